-- lift: counters of a master that has lost them follow those of the others.
--
-- KEYS  1… counters
-- ARGV  1… what they are to be at least
-- Returns how many were lower.
local n = 0
for i = 1, #KEYS do
  local c, want = tonumber(redis.call('GET', KEYS[i]) or '0'), tonumber(ARGV[i])
  if c - c % 2 < want then
    redis.call('SET', KEYS[i], want + c % 2)
    n = n + 1
  end
end
return n
