-- mark: tells a claim that it is broken.
--
-- KEYS  1 the name   2 its counter   3 its line   4 its claims
-- ARGV  1 ID   2 'mark': leave it its time, but renew it no more; 'out': take it out of the line, for good; 'tell': only tell
--       3 how long the line outlives its last visitor, in ms
-- Returns 2 if the claim has this master, 1 if it stands in line, else 0.
local id, how = ARGV[1], ARGV[2]
local v = redis.pcall('GET', KEYS[1])
if type(v) == 'string' and string.sub(v, 1, 27) == 'ilq1:' .. id then
  if how == 'mark' then
    redis.call('SETRANGE', KEYS[1], 27, '!')
  end
  redis.call('PUBLISH', string.match(v, '^%S+ (%S+)'), (how == 'mark' and 'n ' or 'x ') .. id)
  return 2
end
local function sane(reply, key, want) -- as in line
  if type(reply) == 'table' and reply.err then
    if string.sub(reply.err, 1, 9) == 'WRONGTYPE' then
      error(redis.error_reply('CORRUPT ' .. key .. ': want ' .. want .. ', as this library writes it'))
    end
    error(reply)
  end
  return reply
end
local channel = string.match(sane(redis.pcall('HGET', KEYS[4], id), KEYS[4], 'a hash') or '', '^w %d+ %d+ %d+ (%S+) ')
if not channel then
  return 0
end
if how == 'out' then
  local c = sane(redis.pcall('GET', KEYS[2]), KEYS[2], 'a counter') or '0'
  if not string.find(c, '^%d+$') or tonumber(c) >= 9007199254740000 then
    return redis.error_reply('CORRUPT ' .. KEYS[2] .. ': want a counter, as this library writes it')
  end
  local first = sane(redis.pcall('ZRANGE', KEYS[3], 0, 0), KEYS[3], 'a sorted set')[1]
  redis.call('ZREM', KEYS[3], id)
  redis.call('HSET', KEYS[4], id, 'b') -- until its owner has heard of it, so that it does not stand there again
  redis.call('PEXPIRE', KEYS[4], ARGV[3])
  if redis.call('EXISTS', KEYS[3]) == 0 then
    redis.call('SET', KEYS[2], c - c % 2)
    if type(v) == 'string' and string.sub(v, 1, 5) == 'ilq1:' and string.sub(v, 28, 28) == '+' then
      redis.call('SETRANGE', KEYS[1], 27, '-')
    end
  end
  redis.call('PUBLISH', channel, 'x ' .. id)
  local next = first == id and redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  local where = next and string.match(redis.call('HGET', KEYS[4], next) or '', '^w %d+ %d+ %d+ (%S+) ')
  if where then -- as rouse in line
    redis.call('PUBLISH', where, 'g ' .. next .. ' 1')
  end
end
return 1
