-- drop: deletes another program's lock.
--
-- KEYS  1 the name
-- ARGV  1 the value that was seen there
-- Returns 1, or 0 if another value stands there by now.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
