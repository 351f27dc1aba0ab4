-- look: the line of a name, for people.
--
-- KEYS  1 the name   2 its counter   3 its line   4 its claims
-- Returns the value at the name or '', its type, its PTTL, the counter or '', the server's time in ms, and for each claim
-- in line its ID and its record.
local write = redis.pcall('LREM', KEYS[3], 1, '') -- removes nothing: a replica refuses it, and what that knows is old
if type(write) == 'table' and string.find(write.err, 'READONLY', 1, true) then
  return write
end
local kind = redis.call('TYPE', KEYS[1]).ok
local v = ''
if kind == 'string' then
  v = redis.call('GET', KEYS[1])
end
local t = redis.call('TIME')
local r = {v, kind, redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2]) or '', t[1] * 1000 + math.floor(t[2] / 1000)}
for _, id in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
  local d = redis.call('HGET', KEYS[4], id)
  if d then
    r[#r + 1] = id
    r[#r + 1] = d
  end
end
return r
