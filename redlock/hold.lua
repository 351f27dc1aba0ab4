-- hold: renews claims on this master, up to a hundred at once.
--
-- KEYS  1… the names
-- ARGV  1 TTL in ms   2… for each name the beginning of its value: ilq1:ID
-- Returns the claims that were not renewed, each as its number among the keys, times 2, plus 1 if it was broken.
--
-- A key that is gone is never made again: somebody may have held the name in between.
local missing = {}
for i = 1, #KEYS do
  local v = redis.pcall('GETRANGE', KEYS[i], 0, 27)
  if type(v) == 'table' or string.sub(v, 1, 27) ~= ARGV[i + 1] then
    missing[#missing + 1] = i * 2
  elseif string.sub(v, 28, 28) == '!' then
    missing[#missing + 1] = i * 2 + 1
  else
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
  end
end
return missing
