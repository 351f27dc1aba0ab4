-- evict: another program's lock goes, if it still is the one that was seen.
--
-- KEYS  1 the name
-- ARGV  1 its value
-- Returns 1 if it went.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
