-- mark: tells a claim that it was broken.
--
-- KEYS  1 the name   2 its counter   3 its line   4 its claims
-- ARGV  1 ID   2 'mark': leave it its time, but renew it no more; 'tell': only tell   3 channel of its process, or ''
-- Returns 1 if the claim stands there, or if it was only to be told; else 0.
local id, channel = ARGV[1], ARGV[3]
if ARGV[2] == 'mark' then
  local v = redis.pcall('GETRANGE', KEYS[1], 0, 25)
  if v == 'il1:' .. id then
    redis.call('SETRANGE', KEYS[1], 26, '!')
  else
    local d = redis.call('HGET', KEYS[4], id)
    if not d or string.sub(d, 1, 1) == 'w' then
      return 0
    end
    redis.call('HSET', KEYS[4], id, 'b' .. string.sub(d, 2))
  end
end
if channel ~= '' then
  redis.call('PUBLISH', channel, (ARGV[2] == 'mark' and 'n ' or 'x ') .. id)
end
return 1
