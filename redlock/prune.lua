-- prune: deletes counters of names at which nothing stands, and whose last token was drawn long ago.
--
-- KEYS  1 the floor of this master: every counter that it draws is above   2 at least the largest counter that it has drawn
--       3… for each name: the name, its counter, its line
-- ARGV  1 how long ago, in µs
-- Returns the numbers of those names.
--
-- A counter is the time, in µs, at which its last token was drawn, or ahead of that. The order of tokens loses nothing with it: the floor
-- is above it from then on, whatever clocks do.
local t = redis.call('TIME')
local before = t[1] * 1000000 + t[2] - ARGV[1]
local floor, gone, some = tonumber(redis.call('GET', KEYS[1]) or '0'), {}, {}
local high = floor
for i = 3, #KEYS, 3 do
  local c = redis.pcall('GET', KEYS[i + 1])
  c = type(c) == 'string' and string.find(c, '^%d+$') and tonumber(c) or before
  if c < before and redis.call('EXISTS', KEYS[i], KEYS[i + 2]) == 0 then
    high = math.max(high, c - c % 64 + 64)
    some[#some + 1] = KEYS[i + 1]
    gone[#gone + 1] = i / 3
  end
end
if high > floor then -- before anything goes
  redis.call('SET', KEYS[1], string.format('%.0f', high))
end
if high > tonumber(redis.call('GET', KEYS[2]) or '0') then
  redis.call('SET', KEYS[2], string.format('%.0f', high))
end
for i = 1, #some do
  redis.call('DEL', some[i])
end
return gone
