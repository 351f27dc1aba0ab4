-- hold: renews claims that are held, up to a hundred at once.
--
-- KEYS  for each claim   the name   our own notes   the key that holds a reader's own time, or the name again
-- ARGV  1 lease in ms   2 how long notes outlive their last visitor, in ms   3… for each claim its field
-- Returns the claims that were not renewed, each as its number, times 2, plus 1 if it was broken.
--
-- What is gone is never made again: somebody may have held the name in between. A reader renews its own time, and the
-- hash to no less than it has: another reader's lease may be longer.
local lease, keep = tonumber(ARGV[1]), ARGV[2]
local missing = {}
for i = 1, #ARGV - 2 do
  local name, notes, own, me = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i], ARGV[i + 2]
  local note = redis.pcall('HGET', notes, me) -- an error, where somebody else has written there, is no note
  if type(note) == 'string' and string.sub(note, 1, 1) == 'b' then
    missing[#missing + 1] = i * 2 + 1
  elseif redis.pcall('HEXISTS', name, me) ~= 1 or own ~= name and redis.call('PEXPIRE', own, lease) == 0 then
    missing[#missing + 1] = i * 2
  else
    redis.call('PEXPIRE', name, own == name and lease or math.max(lease, redis.call('PTTL', name)))
    redis.call('PEXPIRE', notes, keep)
  end
end
return missing
