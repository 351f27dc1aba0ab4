-- member: what this master knows of the set that it belongs to, and whether it has a vote.
--
-- KEYS  1 its record, a hash   2 its vote: a fingerprint of the set and its own ID   3 whether the set is in use: the same
--       4 its floor: every counter that it draws is above   5 at least the largest counter that it has drawn
-- ARGV  1 'look', or 'use', or what to do with its vote: 'give' or 'stay' or 'wait'; the rest is for these three
--       2 version of the record that it has, 0 for none   3 run_id in that record, or ''   15 when its wait is over by that record, or 0
--       4 version   5 members   6 longest TTL in ms   7 its own ID among the members   8 run_id   9 its vote, if it gets one
--      10 how long it waits, in ms   11 how long a set counts as used, in ms   12 '1' if it forgets nothing when it restarts, and has no replica: a copy
--          that takes its place would have its record, and not all that it was asked
--      13 of which data set it was a replica before, or ''   14 what its floor is to be at least
--       For 'use': 2 its vote   3 how long a set counts as used, in ms.
-- Returns for 'look' version, members, longest TTL, ID, run_id, when its wait is over, vote, for how long the set still
-- counts as used, the time, whether it was one that forgets nothing, of which data set it was a replica, and a counter that
-- is no smaller than all that it has drawn or knows of, all times in ms; for 'use' 1; else 1, or 0 if its record is another one by now.
if ARGV[1] == 'use' then
  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
  local copies = string.match(redis.call('INFO', 'replication'), 'connected_slaves:(%d+)')
  if copies ~= '0' and redis.pcall('HGET', KEYS[1], 'durable') == '1' then
    redis.call('HSET', KEYS[1], 'durable', '0') -- the copy says so, too, and is one that forgets if it takes this one's place
  end
  return 1
end

-- What somebody else has written there is an error that names the key, and nothing is changed.
local function corrupt(key, want)
  error(redis.error_reply('CORRUPT ' .. key .. ': want ' .. want .. ', as this library writes it'))
end
local function sane(reply, key, want)
  if type(reply) == 'table' and reply.err then
    if string.sub(reply.err, 1, 9) == 'WRONGTYPE' then
      corrupt(key, want)
    end
    error(reply)
  end
  return reply
end
local r = sane(redis.pcall('HMGET', KEYS[1], 'version', 'members', 'ttl', 'id', 'run', 'until', 'durable', 'past'), KEYS[1], 'a hash')
for _, i in ipairs({1, 3, 6}) do
  if not string.find(r[i] or '0', '^%d+$') then
    corrupt(KEYS[1], 'numbers')
  end
end
local counted = {}
for i = 4, 5 do
  counted[i] = sane(redis.pcall('GET', KEYS[i]), KEYS[i], 'a counter') or '0'
  if not string.find(counted[i], '^%d+$') or tonumber(counted[i]) >= 9007199254740000 then -- 2^53: no token is rounded
    corrupt(KEYS[i], 'a counter')
  end
end
local vote = sane(redis.pcall('GET', KEYS[2]), KEYS[2], 'a vote') or ''
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if ARGV[1] == 'look' then
  return {tonumber(r[1] or '0'), r[2] or '', tonumber(r[3] or '0'), r[4] or '', r[5] or '', tonumber(r[6] or '0'),
    vote, redis.call('PTTL', KEYS[3]), now, r[7] or '', r[8] or '', counted[5]}
end
if (r[1] or '0') ~= ARGV[2] or (r[5] or '') ~= ARGV[3] or tonumber(r[6] or '0') ~= tonumber(ARGV[15]) then
  return 0
end
local ends = r[6] or '0'
if ARGV[1] == 'wait' then
  ends = string.format('%.0f', now + ARGV[10])
end
redis.call('HSET', KEYS[1], 'version', ARGV[4], 'members', ARGV[5], 'ttl', ARGV[6], 'id', ARGV[7], 'run', ARGV[8], 'until', ends,
  'durable', ARGV[12], 'past', ARGV[13])
if tonumber(ARGV[14]) > tonumber(counted[4]) then
  redis.call('SET', KEYS[4], ARGV[14])
  if tonumber(ARGV[14]) > tonumber(counted[5]) then -- what it knows now it passes on, drawn here or not
    redis.call('SET', KEYS[5], ARGV[14])
  end
end
if ARGV[1] == 'give' or ARGV[1] == 'stay' and redis.call('EXISTS', KEYS[2]) == 1 then
  redis.call('SET', KEYS[2], ARGV[9])
else
  redis.call('DEL', KEYS[2])
end
redis.call('SET', KEYS[3], ARGV[9], 'PX', ARGV[11])
return 1
