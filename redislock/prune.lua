-- prune: deletes counters of names that nobody holds or waits for, and whose last token was drawn long ago.
--
-- KEYS  for each name: the name, its counter, its line
-- ARGV  1 how long ago, in µs
-- Returns how many were deleted.
--
-- A counter is the server's time, in µs, at which its last token was drawn, or ahead of that.
local t = redis.call('TIME')
local before = t[1] * 1000000 + t[2] - ARGV[1]
local deleted = 0
for i = 1, #KEYS, 3 do
  local c = redis.pcall('GET', KEYS[i + 1])
  c = type(c) == 'string' and string.find(c, '^%d+$') and tonumber(c) or before
  if c < before and redis.pcall('GETRANGE', KEYS[i], '0', '0') == '' and redis.pcall('LLEN', KEYS[i + 2]) == 0 then
    deleted = deleted + redis.call('DEL', KEYS[i + 1])
  end
end
return deleted
