-- mark: tells a claim that it was broken.
--
-- KEYS  1 the name   2 its counter   3 its line   4 its claims
-- ARGV  1 ID   2 'mark': leave it its time, but renew it no more; 'out': take it out of the line, for good; 'tell': only tell
--       3 channel of its process, or ''   4 how long the line outlives its last visitor, in ms
-- Returns 1 if the claim stands there, or if it was only to be told; else 0.
local id, how, channel = ARGV[1], ARGV[2], ARGV[3]
if how == 'mark' then
  local v = redis.pcall('GETRANGE', KEYS[1], 0, 26)
  if v ~= 'ilq1:' .. id then
    return 0
  end
  redis.call('SETRANGE', KEYS[1], 27, '!')
elseif how == 'out' then
  if redis.call('HEXISTS', KEYS[4], id) == 0 then
    return 0
  end
  redis.call('ZREM', KEYS[3], id)
  redis.call('HSET', KEYS[4], id, 'b') -- until its owner has heard of it, so that it does not stand there again
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
  if redis.call('EXISTS', KEYS[3]) == 0 then
    local c = tonumber(redis.call('GET', KEYS[2]) or '0')
    redis.call('SET', KEYS[2], c - c % 2)
    local v = redis.pcall('GETRANGE', KEYS[1], 0, 27)
    if type(v) == 'string' and string.sub(v, 1, 5) == 'ilq1:' and string.sub(v, 28) == '+' then
      redis.call('SETRANGE', KEYS[1], 27, '-')
    end
  end
end
if channel ~= '' then
  redis.call('PUBLISH', channel, (how == 'mark' and 'n ' or 'x ') .. id)
end
return 1
