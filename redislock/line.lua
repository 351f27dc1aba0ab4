-- line: everything that is more than a free name: a claim leaves, another joins, and whoever may hold now does.
--
-- KEYS  1 the name   2 its counter   3 its line: IDs in order   4 its claims: ID -> record
-- ARGV  1 ID that leaves, or ''
--       2 '1': other programs use the name as well, seen or not
--       3 how long the line outlives its last visitor, in ms
--       4 ID that joins, asks for its state, or renews itself; the rest is left out if none does
--       5 its kind: m mutex, w write, r read, p permit   6 weight   7 limit   8 TTL in ms
--       9 '1': it stays in line if it cannot be held    10 channel of its process, or '-'   11 information
--      12 '1': it stood in line before, so that it is not put there again
--      13 '1': draw anew if it is held, because its token may come from a counter that went back
-- Returns 1 if the claim that left was held alone and nobody waits; else state, left, counter, wait, head, why, value.
--   state    0 not in line, 1 waits, 2 held, 3 broken, 4 gone, 5 refused: permits never share a name with other claims
--   left     1 if the claim that left was held until now
--   counter  of a claim that is held alone: its tokens are the 32 up to there
--   wait     ms until the state may change by time alone, or -1
--   head     1 if nobody waits ahead of it
--   why      0 ours stands in its way, 1 another program's, 2 a gap left for other programs
--   value    at the name, unless the claim holds or has taken the place of another of its process
--
-- The rule: a claim is held when its weight and the weights of all claims ahead of it add up to at most its limit. A claim
-- held alone is the value of the name itself and has left the line. Claims that share stay in the line with their ends,
-- under a value that covers the name as long as the last of them lives.
--
-- What holds after each run, and lets the short scripts be short: if and only if the line is not empty, the counter is
-- odd, and the value of a claim that is held alone has a + behind its ID.
local K, F, W, H = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leave, enter = ARGV[1], ARGV[4] or ''

-- Whoever joins a line turns the - behind the holder's ID into a +, so the holder sees the line where it looks anyway.
if enter == '' and redis.pcall('GETRANGE', K, 0, 26) == 'il1:' .. leave .. '-' then
  redis.call('DEL', K)
  return 1
end

local mixed, outlives, kind, ttl = ARGV[2] == '1', ARGV[3], ARGV[5] or '', tonumber(ARGV[8] or '0')
local weight, limit = tonumber(ARGV[6] or '1'), tonumber(ARGV[7] or '1')
local queue, again, raise = ARGV[9] == '1', ARGV[12] == '1', ARGV[13] == '1'
local ALL, COVER = 2147483647, 'il1:shared'

local us
local function clock() -- µs
  if not us then
    local t = redis.call('TIME')
    us = t[1] * 1000000 + t[2]
  end
  return us
end
local function ms()
  return math.floor(clock() / 1000)
end

local odd -- of the counter, once it is known
local function draw()
  local c = redis.call('INCRBY', F, 64)
  odd = c % 2
  local t = clock()
  if c < t then
    c = t - t % 64 + 64 + odd
    redis.call('SET', F, c)
  end
  return c - odd
end

local function parse(d)
  local state, kind, weight, limit, time, stop, since, channel, info =
    string.match(d, '^(%a) (%a) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  return {state = state, kind = kind, weight = tonumber(weight), limit = tonumber(limit), ttl = tonumber(time),
    stop = tonumber(stop), since = since, channel = channel, info = info}
end
local function keep(id, c)
  redis.call('HSET', H, id, table.concat({c.state, c.kind, c.weight, c.limit, c.ttl, c.stop, c.since, c.channel, c.info}, ' '))
end
local function remove(id)
  redis.call('LREM', W, 1, id)
  redis.call('HDEL', H, id)
end

-- Who stands at the name: nobody, one of ours alone (id), the cover of ours that share, or a value of another program,
-- which is never touched.
local v = redis.pcall('GET', K)
if type(v) == 'table' then
  if enter ~= '' then
    return v -- WRONGTYPE
  end
  v = '?'
end
local id = v and #v > 26 and string.sub(v, 1, 4) == 'il1:' and string.sub(v, 5, 26) or nil
local cover = v == COVER
local foreign = v and not id and not cover
if foreign and enter ~= '' and string.find(v, '^il%d+:') then
  return redis.error_reply('NEWLAYOUT the value at this name is of a layout that this program does not know')
end

-- Foreign programs: when they were last seen, when the last gap was left to them, handoffs since, end of the gap; all ms.
local seen, gap, handoffs, open
local function others()
  if seen then
    return
  end
  local a, b, c, d = string.match(redis.call('HGET', H, '*') or '0 0 0 0', '^(%d+) (%d+) (%d+) (%d+)$')
  seen, gap, handoffs, open = tonumber(a), tonumber(b), tonumber(c), tonumber(d)
  if math.max(seen, gap, open) > ms() + 100 then -- a gap is no longer: the clock was set back since
    seen, gap, open = math.min(seen, ms()), math.min(gap, ms()), 0
  end
end
local function note()
  redis.call('HSET', H, '*', table.concat({seen, gap, handoffs, open}, ' '))
  redis.call('PEXPIRE', H, outlives)
end
if foreign then
  others()
  if ms() - seen > 1000 then
    seen = ms()
    note()
  end
end

local state, left, counter, wait, head, why = 0, 0, 0, -1, 0, 0
local vacated = false -- the value at the name is of a claim that has just left

if leave ~= '' then
  if id == leave then
    if string.sub(v, 27, 27) ~= '!' then
      left = 1
    end
    id, vacated = nil, true
  else
    local d = redis.call('HGET', H, leave)
    if d then
      local c = parse(d)
      if c.state == 'h' and cover and c.stop > ms() then
        left = 1
      end
      remove(leave)
    end
  end
end

-- tell sends a message to a waiting process and returns whether it hears it. On a Cluster subscribers of every node get
-- what is published, and only those of this node are counted: one that is left out because it does not count must not
-- hear that it holds. So there, where channels are called il:push:=, it is counted first, and one that listens at the
-- master that the slot has left hears that it is to ask again.
local function tell(channel, message)
  if string.sub(channel, 9, 9) == '=' and redis.call('PUBSUB', 'NUMSUB', channel)[2] == 0 then
    redis.call('PUBLISH', channel, 'r' .. string.sub(message, 2, 24))
    return false
  end
  return redis.call('PUBLISH', channel, message) > 0
end

-- promote makes the claim the only holder.
local function promote(who, info, time, more, c)
  v = 'il1:' .. who .. (more and '+' or '-') .. info
  redis.call('SET', K, v, 'PX', time)
  id, vacated, wait = who, false, time
  if who == enter then
    state, counter = 2, c
  end
end

-- rest leaves the name free for a while, if it is time to, and tells the head of the line when to come back. Programs
-- that poll for the name find it free only then: a handoff leaves them nothing. Where none was seen in the last minute the
-- gap is just long enough to see one, sooner or later.
local function due()
  others()
  local known = mixed or seen > 0 and ms() - seen < 60000
  if gap == 0 then
    gap = ms()
    note()
  end
  local now = ms() - gap >= 1000 or known and handoffs >= 31
  if known and not now then
    handoffs = handoffs + 1
    note()
  end
  return now, known
end
local function gapped() -- also where nobody else of ours is in line
  others()
  return open > ms() or vacated and due()
end
local function rest()
  others()
  if open > ms() then
    wait, why = open - ms(), 2
    return true
  end
  if not vacated then
    return false
  end
  local now, known = due()
  if not now then
    return false
  end
  local length = known and math.max(2, math.min(100, math.floor((ms() - gap) / 4))) or 5
  while true do
    local first = redis.call('LINDEX', W, 0)
    if not first then
      return false
    end
    local d = redis.call('HGET', H, first)
    if d and (first == enter or redis.call('PUBLISH', parse(d).channel, 'g ' .. first .. ' ' .. length) > 0) then
      break
    end
    remove(first)
  end
  open = ms() + length
  gap, handoffs, wait, why = open, 0, length, 2
  note()
  return true
end

local seenID, seenRecord -- of the head of the line, where misfit has looked at it

-- settle goes along the line from its head and lets in whoever may hold by the rule. A waiting process that a message
-- does not reach is dead or will join again: it is left out.
local function settle()
  if id or foreign then
    wait, why = redis.call('PTTL', K), foreign and 1 or 0
    if redis.call('LINDEX', W, 0) == enter then
      head = 1
    end
    return
  end
  local sum, i, last, soon, first = 0, 0, 0, nil, true
  while true do
    local who = redis.call('LINDEX', W, i)
    if not who then
      break
    end
    local d = who == seenID and seenRecord or redis.call('HGET', H, who)
    seenID = nil
    local c = d and parse(d)
    if not c or c.state ~= 'w' and (not cover or c.stop <= ms()) then
      remove(who) -- its time is over
    elseif c.state ~= 'w' then
      sum, i = sum + c.weight, i + 1
      last, soon = math.max(last, c.stop), math.min(soon or c.stop, c.stop)
    elseif first and sum == 0 and rest() then
      if who == enter then
        head = 1
      end
      break
    elseif sum + c.weight > c.limit then
      if first and who == enter then
        head = 1
      end
      first, sum, i = false, sum + c.weight, i + 1
      if sum >= ALL or c.kind ~= 'p' or sum >= tonumber(redis.call('HGET', H, '#') or '0') then
        break
      end
    elseif c.kind == 'm' or c.kind == 'w' then
      local drawn = draw()
      local more = redis.call('LLEN', W) > 1
      local heard = who == enter or tell(c.channel, string.format('h %s %.0f %d', who, drawn, more and 1 or 0))
      remove(who)
      if heard then
        promote(who, c.info, c.ttl, more, drawn)
        break
      end
    elseif who == enter or tell(c.channel, 'h ' .. who .. ' 0 1') then
      c.state, c.stop, c.since = 'h', ms() + c.ttl, ms()
      keep(who, c)
      if who == enter then
        state = 2
      end
      sum, i = sum + c.weight, i + 1
      last, soon = math.max(last, c.stop), math.min(soon or c.stop, c.stop)
    else
      remove(who)
    end
  end
  if id then
    if state == 1 and redis.call('LINDEX', W, 0) == enter then
      head = 1
    end
  elseif last > 0 then
    redis.call('SET', K, COVER, 'PX', math.max(1, last - ms()))
    v, cover, vacated = COVER, true, false
    wait = math.max(1, soon - ms())
  elseif v then
    redis.call('DEL', K)
    v, cover, vacated = false, false, false
  end
end

-- misfit tells whether permits stand here and others want to join, or the other way round.
local function misfit()
  if id and kind == 'p' then
    return true
  end
  while true do
    local first = redis.call('LINDEX', W, 0)
    local d = first and redis.call('HGET', H, first)
    if d then
      seenID, seenRecord = first, d
      return (string.sub(d, 3, 3) == 'p') ~= (kind == 'p')
    elseif not first then
      return false
    end
    remove(first)
  end
end

local exclusive = kind == 'm' or kind == 'w'
if enter ~= '' then
  local d
  if id == enter then
    if string.sub(v, 27, 27) == '!' then
      state = 3
    else
      redis.call('PEXPIRE', K, ttl)
      state, counter = 2, raise and draw() or tonumber(redis.call('GET', F) or '0')
      counter = counter - counter % 2
    end
  else
    d = redis.call('HGET', H, enter)
  end
  if d then
    local c = parse(d)
    if c.state == 'b' then
      state = 3
    elseif c.state == 'w' then
      c.channel, c.info, c.ttl = ARGV[10], ARGV[11], ttl
      keep(enter, c)
      redis.call('PEXPIRE', W, outlives)
      redis.call('PEXPIRE', H, outlives)
      state = 1
    elseif cover and c.stop > ms() then
      c.stop = ms() + ttl
      keep(enter, c)
      state = 2
    else
      remove(enter)
      state = 4
    end
  elseif state == 0 and again then
    state = 4
  elseif state == 0 and exclusive and (not v or vacated) and redis.call('EXISTS', W) == 0 and not gapped() then
    promote(enter, ARGV[11], ttl, false, draw()) -- nobody else is here
  elseif state == 0 and (misfit() and (settle() or misfit())) then
    state = 5
  elseif state == 0 and (queue or not id and not foreign) then
    local length = redis.call('RPUSH', W, enter)
    redis.call('HSET', H, enter, 'w ' .. kind .. ' ' .. ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. ARGV[8] .. ' 0 ' .. ms() .. ' ' ..
      ARGV[10] .. ' ' .. ARGV[11])
    if length == 1 or us % 16 == 0 then -- now and then will do
      redis.call('PEXPIRE', W, outlives)
      redis.call('PEXPIRE', H, outlives)
    end
    if kind == 'p' and limit > tonumber(redis.call('HGET', H, '#') or '0') then
      redis.call('HSET', H, '#', limit) -- the largest limit here
    end
    state = 1
  elseif state == 0 then
    redis.call('PEXPIRE', W, outlives) -- a replica, whose word is old, refuses to write
  end
end

if not id or state == 1 then
  settle()
end

if state == 1 and not queue and not again then
  remove(enter)
  state = 0
end

local n = redis.call('LLEN', W)
if not odd then
  odd = tonumber(string.sub(redis.call('GET', F) or '0', -1)) % 2
end
if n > 0 and odd == 0 then
  redis.call('INCR', F)
elseif n == 0 and odd == 1 then
  redis.call('DECR', F)
end
if id then
  local mark = string.sub(v, 27, 27)
  local want = n > 0 and '+' or '-'
  if mark ~= want and mark ~= '!' then
    redis.call('SETRANGE', K, 26, want)
  end
end
return {state, left, counter, wait, head, why, enter ~= '' and leave == '' and state < 2 and v or ''}
