-- look: the line of a name on this master, for people.
--
-- KEYS  1 the name   2 its counter   3 its line   4 its claims
-- Returns the value at the name or '', its type, its PTTL, the counter or '', the server's time in ms, and for each claim
-- in line its ID, its ticket and its record.
local function sane(reply, key, want) -- as in line
  if type(reply) == 'table' and reply.err then
    if string.sub(reply.err, 1, 9) == 'WRONGTYPE' then
      error(redis.error_reply('CORRUPT ' .. key .. ': want ' .. want .. ', as this library writes it'))
    end
    error(reply)
  end
  return reply
end
local counter = sane(redis.pcall('GET', KEYS[2]), KEYS[2], 'a counter') or ''
if not string.find(counter, '^%d*$') or (tonumber(counter) or 0) >= 9007199254740000 then
  return redis.error_reply('CORRUPT ' .. KEYS[2] .. ': want a counter, as this library writes it')
end
local line = sane(redis.pcall('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'), KEYS[3], 'a sorted set')
local kind = redis.call('TYPE', KEYS[1]).ok
local v = ''
if kind == 'string' then
  v = redis.call('GET', KEYS[1])
end
local t = redis.call('TIME')
local r = {v, kind, redis.call('PTTL', KEYS[1]), counter, t[1] * 1000 + math.floor(t[2] / 1000)}
for i = 1, #line, 2 do
  local d = sane(redis.pcall('HGET', KEYS[4], line[i]), KEYS[4], 'a hash')
  if d then
    r[#r + 1] = line[i]
    r[#r + 1] = string.format('%.0f', line[i + 1])
    r[#r + 1] = d
  end
end
return r
