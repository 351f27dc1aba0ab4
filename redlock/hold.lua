-- hold: renews claims on this master, up to a hundred at once.
--
-- KEYS  1 the vote of this master   2… the names
-- ARGV  1 TTL in ms   2 the vote that this master has in the set of the client   3… for each name the beginning of its
--       value: ilq1:ID
-- Returns the claims that were not renewed, each as its number among the names, times 2, plus 1 if it was broken.
--
-- A master that belongs to another set by now renews for nobody: a majority of that set may be none of the former one.
-- A key that is gone is never made again: somebody may have held the name in between.
local r = redis.call('MGET', unpack(KEYS))
if r[1] ~= ARGV[2] then
  return redis.error_reply('NOVOTE this master has no vote among the masters of this program')
end
local missing = {}
for i = 2, #KEYS do
  local v = r[i]
  if not v or string.sub(v, 1, 27) ~= ARGV[i + 1] then
    missing[#missing + 1] = i * 2 - 2
  elseif string.sub(v, 28, 28) == '!' then
    missing[#missing + 1] = i * 2 - 1
  else
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
  end
end
return missing
