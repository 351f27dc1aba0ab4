-- take: a claim takes the name if that is free for it, is found there and renewed, or waits.
--
-- KEYS  1 the name: a hash   2 the counter of tokens   3 the places in line of fair locks   4 our own notes: a hash
--       5 the key that holds a reader's own time; the name again for others
-- ARGV  1 the claim's field   2 its kind: m mutex, w write, r read   3 lease in ms   4 how long notes outlive their last
--       visitor, in ms   5 '1': it waits if it cannot be held   6 what its session knows: '' new, 'w' it waited,
--       'h' it held   7 note: public id and information
-- Returns state, token, PTTL of the name, field of a holder, its note or the kind that stands there.
--   state  0 not held   1 held   2 broken   3 gone   4 another kind of lock stands there   5 another type of data
--          6 a line of fair locks stands there
--   token  the lowest of the 32 that the grant has drawn; 0 for readers
--
-- What is written at the keys 1, 2 and 5 is Redisson's layout. A claim is one thread of Redisson: its field is its own, so
-- it is never entered twice. Notes are fields of the fourth key, by the same names:
--   state kind token since stop note   with the state h held, w waiting until stop, b broken, x released
-- and tell people who holds, and this script what a claim may still do: one whose release has overtaken it is not put
-- there any more, and one that waited is put there only as long as it stands in the notes.
local name, counter, places, notes, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local me, kind, lease, keep, waits, was, text = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1', ARGV[6], ARGV[7]

local now
local function ms()
  if not now then
    local t = redis.call('TIME')
    now = t[1] * 1000 + math.floor(t[2] / 1000)
  end
  return now
end

-- purge drops what nobody will: notes of holders that have died, and of waiters that have not asked for a minute.
local function purge()
  local all = redis.call('HGETALL', notes)
  for i = 1, #all, 2 do
    local state, stop = string.match(all[i + 1], '^(%a) %a %d+ %d+ (%d+)')
    if not state or tonumber(stop) + 60000 < ms() and redis.call('HEXISTS', name, all[i]) == 0 then
      redis.call('HDEL', notes, all[i])
    end
  end
end

local function note(state, token, since)
  local new = redis.call('HSET', notes, me, string.format('%s %s %.0f %.0f %.0f ', state, kind, token, since, ms() + lease) .. text)
  redis.call('PEXPIRE', notes, keep)
  if new == 1 and redis.call('HLEN', notes) % 64 == 0 then
    purge()
  end
end

local function corrupt(key, want)
  return redis.error_reply('CORRUPT ' .. key .. ': want ' .. want .. ', as Redisson or this library writes it')
end

-- draw returns the lowest of 32 new tokens, or an error, and then nothing is drawn: somebody else has written there, as what is below 0,
-- or it is too large to count on.
local function draw()
  local last = redis.pcall('INCRBY', counter, 32)
  if type(last) == 'number' and last >= 32 and last < 9007199254740000 then -- 2^53: no token is rounded
    return last - 31
  elseif type(last) == 'number' then
    redis.call('INCRBY', counter, -32)
    return nil, corrupt(counter, 'a counter')
  end
  local text = last.err
  for _, word in ipairs({'WRONGTYPE', 'integer', 'overflow'}) do
    if string.find(text, word, 1, true) then
      return nil, corrupt(counter, 'a counter')
    end
  end
  return nil, last
end

-- A server whose memory is full denies a script's first write, if that may need memory, and none that comes after another one.
-- So whoever stands here already begins with one that needs none: it is renewed, and let in when its turn has come. Whoever is
-- new is denied, and costs nobody else anything.
local mine = redis.pcall('HGET', notes, me)
if type(mine) == 'table' then
  return string.sub(mine.err, 1, 9) == 'WRONGTYPE' and corrupt(notes, 'a hash') or mine
end
local state = mine and string.sub(mine, 1, 1)
if mine then
  redis.call('HDEL', notes, '')
end
if state == 'b' then
  return {2, 0, 0, '', ''}
elseif state == 'x' then
  return {3, 0, 0, '', ''}
end

local mode
if redis.call('EXISTS', name, places) > 0 then
  local found = redis.pcall('HMGET', name, 'mode', me)
  if found.err then
    return {5, 0, 0, '', redis.call('TYPE', name).ok}
  end
  mode = found[1]
  if found[2] then
    if kind == 'r' then
      if redis.call('PEXPIRE', own, lease) == 0 then
        return {3, 0, 0, '', ''} -- its time is over, and the hash lives for others
      end
      lease = math.max(lease, redis.call('PTTL', name)) -- never less than another reader's
    end
    redis.call('PEXPIRE', name, lease)
    redis.call('PEXPIRE', notes, keep)
    local token = mine and tonumber(string.match(mine, '^%a %a (%d+)')) or 0
    if token == 0 and kind ~= 'r' then -- the note was lost
      local drawn, failed = draw()
      if failed then
        return failed
      end
      token = drawn
      note('h', token, ms())
    end
    return {1, token, 0, '', ''}
  elseif was == 'h' or was == 'w' and state ~= 'w' then
    return {3, 0, 0, '', ''}
  end
  local holders = redis.call('HLEN', name)
  local fair = redis.pcall('ZCOUNT', places, '(' .. ms(), '+inf')
  if type(fair) == 'table' then
    return string.sub(fair.err, 1, 9) == 'WRONGTYPE' and corrupt(places, 'a sorted set') or fair
  elseif fair > 0 then
    return {6, 0, 0, '', ''}
  elseif holders > 0 and (kind == 'm') == (mode ~= false) then
    return {4, 0, 0, '', mode and 'rw' or 'lock'}
  elseif holders > 0 and not (kind == 'r' and mode == 'read') then
    if waits then
      note('w', 0, mine and tonumber(string.match(mine, '^w %a %d+ (%d+)')) or ms())
    end
    local field = ''
    if holders <= 16 then
      for _, f in ipairs(redis.call('HKEYS', name)) do
        if f ~= 'mode' then
          field = f
        end
      end
    end
    return {0, 0, redis.call('PTTL', name), field, redis.call('HGET', notes, field) or ''}
  end
elseif was == 'h' or was == 'w' and state ~= 'w' then
  return {3, 0, 0, '', ''}
end

local token = 0
if kind ~= 'r' then
  local drawn, failed = draw()
  if failed then
    return failed
  end
  token = drawn
end
if kind == 'm' then
  redis.call('HSET', name, me, 1)
elseif kind == 'w' then
  redis.call('HSET', name, 'mode', 'write', me, 1)
else
  if not mode then
    redis.call('HSET', name, 'mode', 'read')
  end
  redis.call('HSET', name, me, 1)
  redis.call('SET', own, 1, 'PX', lease)
end
redis.call('PEXPIRE', name, math.max(lease, mode and redis.call('PTTL', name) or 0))
note('h', token, ms())
if token % 2048 == 1 then
  purge()
end
return {1, token, 0, '', ''}
