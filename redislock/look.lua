-- look: the lines of some names, for people.
--
-- KEYS  for each name: the name, its counter, its line, its claims
-- Returns for each name a list: the value at the name or '', its type, its PTTL, the counter or '', the server's time in ms, and for
-- each claim in line its ID and its record. Where that are many claims, or long values, the names that follow are left out.
local write = redis.pcall('LREM', KEYS[3], 1, '') -- removes nothing: a replica refuses it, and what that knows is old
if type(write) == 'table' and string.find(write.err, 'READONLY', 1, true) then
  return write
end
local function sane(reply, key, want)
  if type(reply) == 'table' and reply.err then
    if string.sub(reply.err, 1, 9) == 'WRONGTYPE' then
      error(redis.error_reply('CORRUPT ' .. key .. ': want ' .. want .. ', as this library writes it'))
    end
    error(reply)
  end
  return reply
end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local MANY = 500 -- claims
local all, claims = {}, 0
for i = 1, #KEYS, 4 do
  local K, F, W, H = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local counter = sane(redis.pcall('GET', F), F, 'a counter') or ''
  if not string.find(counter, '^%d*$') or (tonumber(counter) or 0) >= 9007199254740000 then
    return redis.error_reply('CORRUPT ' .. F .. ': want a counter, as this library writes it')
  end
  local line = sane(redis.pcall('LRANGE', W, 0, -1), W, 'a list')
  local v = redis.pcall('GET', K)
  local kind = type(v) == 'string' and 'string' or redis.call('TYPE', K).ok
  if kind ~= 'string' then
    v = ''
  end
  local r = {v, kind, redis.call('PTTL', K), counter, now}
  for from = 1, #line, MANY do
    local to = math.min(from + MANY - 1, #line)
    for j, d in ipairs(sane(redis.pcall('HMGET', H, unpack(line, from, to)), H, 'a hash')) do
      if d then
        r[#r + 1] = line[from + j - 1]
        r[#r + 1] = d
      end
    end
  end
  all[#all + 1] = r
  claims = claims + #line + #v / 1000
  if claims >= MANY then
    break
  end
end
return all
