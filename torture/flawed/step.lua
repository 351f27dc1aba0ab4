-- step: what a claim does on one master.
--
-- KEYS  1 the name: a sorted set of those who hold, by when their time is over   2 all counters: name -> counter
--       3 the vote of this master: the run_id of the start that got it
-- ARGV  1 take, keep, raise or leave   2 the claim's value   3 TTL in ms   4 how many may hold
--       5 how far the counter moves with a grant, or to raise where it must be   6 '1': without a vote, too
-- Returns -1 if the master has no vote, 0 for no, and for yes 1, or the counter to take.
local what, value = ARGV[1], ARGV[2]
if what == 'leave' then
  return redis.call('ZREM', KEYS[1], value)
end
if ARGV[6] ~= '1' and redis.call('GET', KEYS[3]) ~= string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') then
  return -1
end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local function hold()
  redis.call('ZADD', KEYS[1], now + ARGV[3], value)
  redis.call('PEXPIREAT', KEYS[1], redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
end
if what == 'take' then
  if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then
    return 0
  end
  hold()
  return redis.call('HINCRBY', KEYS[2], KEYS[1], ARGV[5])
end
if not redis.call('ZSCORE', KEYS[1], value) then
  return 0
end
if what == 'keep' then
  hold()
elseif tonumber(ARGV[5]) > tonumber(redis.call('HGET', KEYS[2], KEYS[1]) or '0') then
  redis.call('HSET', KEYS[2], KEYS[1], ARGV[5])
end
return 1
