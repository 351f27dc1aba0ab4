-- leave: a claim leaves the name, held or waiting.
--
-- KEYS  1 the name: a hash   2 our own notes: a hash
-- ARGV  1 the claim's field   2 its kind: m mutex, w write, r read   3 PUBLISH or SPUBLISH   4 channel
--       5 how the keys that hold readers' own times begin   6 '' or how long to remember, in ms, that it was released,
--       because a request for it may still be under way
-- Returns 1 if it was held until now, else 0.
--
-- Written and told as Redisson does: an RLock's end is told with 0, the last reader's with 0, a writer's with 1. A claim of
-- another program goes with all its holds.
local name, notes = KEYS[1], KEYS[2]
local me, kind, publish, channel, own, remember = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local note = redis.pcall('HGET', notes, me) -- an error, where somebody else has written there, is no note
local sane = type(note) ~= 'table'
local state = sane and note and string.sub(note, 1, 1)
if sane then
  redis.call('HDEL', notes, me) -- the first write: a full memory denies none that comes after it
end
if remember ~= '' and sane then
  local t = redis.call('TIME')
  local stop = t[1] * 1000 + math.floor(t[2] / 1000) + tonumber(remember)
  redis.call('HSET', notes, me, string.format('x %s 0 0 %.0f ', kind, stop))
  redis.call('PEXPIRE', notes, math.max(tonumber(remember), redis.call('PTTL', notes)))
end

local found = redis.pcall('HMGET', name, 'mode', me)
if found.err then
  return 0 -- somebody else's data
end
local mode, count = found[1], found[2]
if kind ~= 'm' and not mode and state == 'h' then -- it had expired
  redis.call(publish, channel, kind == 'w' and '1' or '0')
end
if not count then
  return 0
end
local held = state ~= 'b' and 1 or 0

redis.call('HDEL', name, me)
if kind == 'm' then
  redis.call(publish, channel, '0')
  return held
elseif kind == 'w' then
  if redis.call('HLEN', name) <= 1 then -- only the mode is left
    redis.call('DEL', name)
    redis.call(publish, channel, '1')
  else
    redis.call('HSET', name, 'mode', 'read') -- the writer's own reads stay: nobody is told
  end
  return held
end

-- A reader's time of its own may be over while the hash lives for others.
local holds = 0
for i = 1, tonumber(count) or 0 do
  holds = holds + redis.call('DEL', own .. me .. ':rwlock_timeout:' .. i)
end
if holds == 0 then
  held = 0
end
-- Others are left: the hash lives as long as the longest of their own times. None is longer than what it has, so the search ends with the
-- first that is as long, as of many that were renewed together every one is: but for a ms or two, for time goes on meanwhile.
local longest = 0
if redis.call('HLEN', name) > 1 then
  local all, most = redis.call('HGETALL', name), redis.call('PTTL', name)
  for i = 1, #all, 2 do
    for n = 1, tonumber(all[i + 1]) or 0 do
      longest = math.max(longest, redis.call('PTTL', own .. all[i] .. ':rwlock_timeout:' .. n))
    end
    if most > 2 and longest >= most - 2 then
      return held
    end
  end
  if longest > 0 then
    redis.call('PEXPIRE', name, longest)
    return held
  elseif mode == 'write' then
    return held
  end
end
redis.call('DEL', name)
redis.call(publish, channel, '0')
return held
