-- mark: marks a claim of ours as broken, so that it is renewed no more, or granted no more if it waits.
--
-- KEYS  1 the name: a hash   2 our own notes: a hash
-- ARGV  1 the claim's field   2 PUBLISH or SPUBLISH   3 channel of those who wait, told if the claim is one of them
-- Returns 1, or 0 if the claim does not stand there.
local note = redis.call('HGET', KEYS[2], ARGV[1])
if not note then
  return 0
end
local state = string.sub(note, 1, 1)
if state == 'h' and redis.pcall('HEXISTS', KEYS[1], ARGV[1]) ~= 1 or state == 'x' then
  return 0
end
redis.call('HSET', KEYS[2], ARGV[1], 'b' .. string.sub(note, 2))
if state == 'w' then
  redis.call(ARGV[2], ARGV[3], '0')
end
return 1
