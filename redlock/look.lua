-- look: the line of a name on this master, for people.
--
-- KEYS  1 the name   2 its counter   3 its line   4 its claims
-- Returns the value at the name or '', its type, its PTTL, the counter or '', the server's time in ms, and for each claim
-- in line its ID, its ticket and its record.
local kind = redis.call('TYPE', KEYS[1]).ok
local v = ''
if kind == 'string' then
  v = redis.call('GET', KEYS[1])
end
local t = redis.call('TIME')
local r = {v, kind, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2]) or '', t[1] * 1000 + math.floor(t[2] / 1000)}
local line = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
for i = 1, #line, 2 do
  local d = redis.call('HGET', KEYS[4], line[i])
  if d then
    r[#r + 1] = line[i]
    r[#r + 1] = string.format('%.0f', line[i + 1])
    r[#r + 1] = d
  end
end
return r
