-- admit: a master asks to be one of those that count, and becomes one when what it may have forgotten is over.
--
-- KEYS  1 its vote   2 since when it waits for one   3 its counters
-- ARGV  1 how long it waits, in ms   2 '1': let it in, with the counters of the others that follow: name, counter, ...
-- Returns how long it still has to wait, in ms; 0 when it can be let in; -1 when it counts.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if redis.call('GET', KEYS[1]) == run then
  return -1
end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local who, since = string.match(redis.call('GET', KEYS[2]) or '', '^(%x+) (%d+)$')
if who ~= run then
  redis.call('SET', KEYS[2], run .. ' ' .. now)
  since = now
end
local left = since + ARGV[1] - now
if left > 0 or ARGV[2] ~= '1' then
  return math.max(left, 0)
end
for i = 3, #ARGV, 2 do
  if tonumber(ARGV[i + 1]) > tonumber(redis.call('HGET', KEYS[3], ARGV[i]) or '0') then
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  end
end
redis.call('SET', KEYS[1], run)
return -1
