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
local channel = string.match(redis.call('HGET', KEYS[4], id) or '', '^w %d+ %d+ (%S+) ')
if not channel then
  return 0
end
if how == 'out' then
  redis.call('ZREM', KEYS[3], id)
  redis.call('HSET', KEYS[4], id, 'b') -- until its owner has heard of it, so that it does not stand there again
  redis.call('PEXPIRE', KEYS[4], ARGV[3])
  if redis.call('EXISTS', KEYS[3]) == 0 then
    local c = tonumber(redis.call('GET', KEYS[2]) or '0')
    redis.call('SET', KEYS[2], c - c % 2)
    if type(v) == 'string' and string.sub(v, 1, 5) == 'ilq1:' and string.sub(v, 28, 28) == '+' then
      redis.call('SETRANGE', KEYS[1], 27, '-')
    end
  end
  redis.call('PUBLISH', channel, 'x ' .. id)
end
return 1
