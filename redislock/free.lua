-- free: exclusive claims that nobody waits for leave, up to a hundred at once.
--
-- KEYS  the names
-- ARGV  for each name the beginning of the value of a claim that nobody waits for: il1:ID-
-- Returns for each name 1 if it was held and is free now; 0 if the long script must look.
local all = {}
for i = 1, #KEYS do
  all[i] = redis.pcall('GETRANGE', KEYS[i], 0, 26) == ARGV[i] and redis.call('DEL', KEYS[i]) or 0
end
return all
