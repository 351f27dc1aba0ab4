-- drop: an exclusive claim that nobody waits for leaves.
--
-- KEYS  1 the name
-- ARGV  1 the beginning of the value of a claim that nobody waits for: il1:ID-
-- Returns 1 if it was held and is free now; 0 if the long script must look.
--
-- Whoever joins the line turns the - behind the ID into a +, so the holder sees the line where it looks anyway.
if redis.call('GETRANGE', KEYS[1], 0, 26) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  return 1
end
return 0
