-- line: everything that is more than a free name: a claim leaves, another joins, and whoever may hold now does.
--
-- KEYS  1 the name   2 its counter   3 its line: IDs in order   4 its claims: ID -> record
-- ARGV  1 ID that leaves, or ''
--       2 '1': other programs use the name as well, seen or not
--       3 how long the line outlives its last visitor, in ms
--       4 how long the counter outlives its last visitor, in ms; '0': for ever
--       5 ID that joins, asks for its state, or renews itself; the rest is left out if none does
--       6 its kind: m mutex, w write, r read, p permit   7 weight   8 limit   9 TTL in ms
--      10 '1': it stays in line if it cannot be held    11 channel of its process   12 information
--      13 '1': it stood in line before, so that it is not put there again
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
--
-- A server whose memory is full denies a script's first write, if that may need memory, and none that comes after another one.
-- So whoever leaves or stands here already begins with one that needs none, an HDEL of nothing: it leaves, hands over and is
-- renewed. Whoever is new is denied, and costs nobody else anything.
local K, F, W, H = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leave, life, enter = ARGV[1], tonumber(ARGV[4]), ARGV[5] or ''
local eighth = life * 125 -- of it, in µs: see take.lua

-- Whoever joins a line turns the - behind the holder's ID into a +, so the holder sees the line where it looks anyway.
local v = redis.pcall('GETRANGE', K, '0', '26')
if enter == '' and v == 'il1:' .. leave .. '-' then
  redis.call('DEL', K)
  return 1
end

-- The usual turn, of claims held alone: one leaves and stands again at the end, and the first in line holds. It makes no
-- functions and asks nothing twice, which is a third less than what the rest of this script takes for it. Whatever is not
-- quite usual is left to that; it comes at least once a second, with the gap that is due.
if enter ~= '' and v == 'il1:' .. leave .. '+' and ARGV[2] == '0' and ARGV[10] == '1' and ARGV[13] == '0' and ARGV[6] ~= 'p' and ARGV[6] ~= 'r' then
  local who = redis.pcall('LINDEX', W, '0')
  local d = type(who) == 'string' and redis.pcall('HMGET', H, who, enter, '*') or {}
  local time, channel, info = string.match(d[1] or '', '^w [mw] %d+ %d+ (%d+) %d+ %d+ (il:push:[^=]%S*) (.*)$')
  local gap, open = string.match(d[3] or '', '^0 (%d+) %d+ (%d+)$') -- of other programs, none of which was seen: see below
  if time and not d[2] and gap then
    local t = redis.call('TIME')
    local us = t[1] * 1000000 + t[2]
    local now = math.floor(us / 1000)
    redis.call('HDEL', H, '')
    local c = redis.pcall('INCRBY', F, '64')
    if type(c) == 'number' and c % 2 == 1 and now >= tonumber(gap) and now - gap < 1000 and now >= tonumber(open) then
      local before = c - 64
      if c < us then
        c = us - us % 64 + 65
        redis.call('INCRBY', F, c - before - 64)
      end
      if life > 0 and math.floor(before / eighth) < math.floor(c / eighth) then
        redis.call('PEXPIRE', F, life + math.max(0, math.floor((c - us) / 1000)))
      end
      if redis.call('PUBLISH', channel, string.format('h %s %.0f 1', who, c - 1)) > 0 then
        redis.call('SET', K, 'il1:' .. who .. '+' .. info, 'PX', time)
        redis.call('HSET', H, enter, 'w ' .. ARGV[6] .. ' ' .. ARGV[7] .. ' ' .. ARGV[8] .. ' ' .. ARGV[9] .. ' ' .. now + ARGV[9] .. ' ' ..
          now .. ' ' .. ARGV[11] .. ' ' .. ARGV[12])
        local n = redis.call('RPUSH', W, enter) -- before the other goes: a line that is empty for a moment comes back without an end
        redis.call('LREM', W, '1', who)
        redis.call('HDEL', H, who)
        return {1, 1, 0, tonumber(time), n == 2 and 1 or 0, 0, ''}
      end
    end
  end
end

-- Who stands at the name: nobody, one of ours alone (id), the cover of ours that share, or a value of another program,
-- which is never touched.
if v ~= 'il1:' .. leave .. '+' then
  v = redis.pcall('GET', K) -- all of it, or false
end
if type(v) == 'table' then
  if enter ~= '' then
    return v -- WRONGTYPE
  end
  v = '?'
end
local ALL, COVER = 2147483647, 'il1:shared'
local id = v and #v > 26 and string.sub(v, 1, 4) == 'il1:' and string.sub(v, 5, 26) or nil
local cover = v == COVER
local foreign = v and not id and not cover
if foreign and enter ~= '' and string.find(v, '^il%d+:') then
  return redis.error_reply('NEWLAYOUT the value at this name is of a layout that this program does not know')
end

local mixed, outlives, kind, ttl = ARGV[2] == '1', ARGV[3], ARGV[6] or '', tonumber(ARGV[9] or '0')
local weight, limit = tonumber(ARGV[7] or '1'), tonumber(ARGV[8] or '1')
local queue, again = ARGV[10] == '1', ARGV[13] == '1'
local state, left, counter, wait, head, why = 0, 0, 0, -1, 0, 0
local renewed = 0 -- until when the claim that asks shares from now on
local headless = false -- the first of those who wait has just left
local vacated = false -- the value at the name is of a claim that has just left

local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = math.floor(us / 1000)

-- sane returns what a key answers. If somebody else has written there, it ends the run with an error that names the key, before
-- anything is changed.
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
local counted = sane(redis.pcall('GET', F), F, 'a counter') or '0'
if not string.find(counted, '^%d+$') or tonumber(counted) >= 9007199254740000 then -- 2^53: no token is rounded
  corrupt(F, 'a counter')
end
local odd = tonumber(counted) % 2

-- The line: how long it is, and its first claim, which almost every run has to look at, with its record and the notes.
local n = sane(redis.pcall('LLEN', W), W, 'a list')
local first = n > 0 and redis.call('LINDEX', W, '0')
local middle = leave ~= '' and n > 8 and redis.call('LINDEX', W, math.floor(n / 2)) or ''
local d = sane(redis.pcall('HMGET', H, '*', enter, first or '', '^', leave, '#', middle), H, 'a hash')
local notes, mine, record, shared, leaver = d[1], d[2], d[3], d[4], d[5]
local largest = tonumber(d[6] or '0') or corrupt(H .. ' #', 'a number') -- limit here

-- A record: state kind weight limit ttl stop since channel info. Whoever waits and was not renewed until its stop keeps its place,
-- and is no longer shown.
local RECORD = '^(%a) (%a) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$'

-- Other programs: when they were last seen, when the last gap was left to them, handoffs since, end of the gap; all ms.
local seen, gap, handoffs, open = 0, 0, 0, 0
if notes then
  local a, b, c, e = string.match(notes, '^(%d+) (%d+) (%d+) (%d+)$')
  if not a then
    corrupt(H .. ' *', 'four numbers')
  end
  seen, gap, handoffs, open = tonumber(a), tonumber(b), tonumber(c), tonumber(e)
  if math.max(seen, gap, open) > now + 100 then -- a gap is no longer: the clock was set back since
    seen, gap, open = math.min(seen, now), math.min(gap, now), 0
  end
end

-- The first in line that are known to share: how many, the sum of their weights, and a time before which none of them ends. A
-- claim that is renewed ends later, so a line of a thousand is gone through from its first claim only when that time has come.
local count, sum, soon, noted = 0, 0, 0, nil
if shared and cover then
  noted = shared
  local c, w, e = string.match(shared, '^(%d+) (%d+) (%d+)$')
  if not c then
    corrupt(H .. ' ^', 'three numbers')
  end
  if tonumber(e) > now then
    count, sum, soon = tonumber(c), tonumber(w), tonumber(e)
  end
end

local function at(i)
  if i == 0 and first then
    return first, record
  end
  local who = redis.call('LINDEX', W, i)
  return who, who and redis.call('HGET', H, who)
end
local function keep(who, record)
  redis.call('HSET', H, who, record)
  if who == first then
    first = nil
  end
end
-- A list is searched from one of its ends, which takes a server 20 to 40 ns for each claim on the way: from the nearer one.
local function remove(who, late)
  n = n - redis.call('LREM', W, late and '-1' or '1', who)
  redis.call('HDEL', H, who)
  if who == first then
    first = nil
  end
end

if leave ~= '' then
  if id == leave then
    if string.sub(v, 27, 27) ~= '!' then
      left = 1
    end
    id, vacated = nil, true
  elseif leaver then
    local s, w, ends, since = string.match(leaver, '^(%a) %a (%d+) %d+ %d+ (%d+) (%d+)')
    if s == 'h' and cover and tonumber(ends) > now then
      left = 1
    end
    local edge = s ~= 'w' and count > 0 and redis.call('LINDEX', W, count - 1)
    headless = s == 'w' and (count == 0 and cover or (count > 0 and redis.call('LINDEX', W, count) or first) == leave)
    -- Whoever came after the middle one stands behind it, unless the clock was set back since; all who wait stand behind those who
    -- hold, unless their limits differ. Then the search is longer.
    local ms, msince = string.match(d[7] or '', '^(%a) %a %d+ %d+ %d+ %d+ (%d+)')
    local late = since and ms and (ms ~= 'w' and s == 'w' or (ms == 'w') == (s == 'w') and tonumber(since) >= tonumber(msince))
    remove(leave, late)
    -- It was one of the first if the last of them has come forward.
    if edge and (edge == leave or count > 1 and redis.call('LINDEX', W, count - 2) == edge) then
      sum, count = sum - (w or 0), count - 1
    end
  end
end
if leave ~= '' or mine then
  redis.call('HDEL', H, '')
end

-- The counter may go when nobody has come by for long: the next one begins at the server's time, which is beyond it.
local function stay(c)
  if life > 0 then
    redis.call('PEXPIRE', F, life + math.max(0, math.floor((c - us) / 1000)))
  end
end
local function draw()
  local c = redis.call('INCRBY', F, '64')
  local before = c - 64
  if c < us then
    c = us - us % 64 + 64 + odd
    redis.call('INCRBY', F, c - before - 64)
  end
  if math.floor(before / eighth) < math.floor(c / eighth) then
    stay(c)
  end
  return c - odd
end

local function note()
  redis.call('HSET', H, '*', table.concat({seen, gap, handoffs, open}, ' '))
  redis.call('PEXPIRE', H, outlives)
end
if foreign and now - seen > 1000 then
  seen = now
  note()
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
  id, vacated, wait = who, false, tonumber(time)
  if who == enter then
    state, counter = 2, c
  end
end

-- due tells whether it is time to leave the name free for a while. Programs that poll for the name find it free only
-- then: a handoff leaves them nothing. Where none was seen in the last minute the gap is just long enough to see one,
-- sooner or later.
local function due()
  local known = mixed or seen > 0 and now - seen < 60000
  if gap == 0 then
    gap = now
    note()
  end
  local yes = now - gap >= 1000 or known and handoffs >= 31
  if known and not yes then
    handoffs = handoffs + 1
    note()
  end
  return yes, known
end

-- rest leaves the name free, if it is time to, and tells the head of the line when to come back.
local function rest()
  if open > now then
    wait, why = open - now, 2
    return true
  end
  if not vacated then
    return false
  end
  local yes, known = due()
  if not yes then
    return false
  end
  local length = known and math.max(2, math.min(100, math.floor((now - gap) / 4))) or 5
  while true do
    local who, d = at(0)
    if not who then
      return false
    end
    if d and (who == enter or redis.call('PUBLISH', select(8, string.match(d, RECORD)), 'g ' .. who .. ' ' .. length) > 0) then
      break
    end
    remove(who)
  end
  open = now + length
  gap, handoffs, wait, why = open, 0, length, 2
  note()
  return true
end

-- deaf tells whether a waiter's process does not listen: it is dead, or will ask by itself. A user who may not ask for that is told no.
local function deaf(channel)
  return redis.pcall('PUBSUB', 'NUMSUB', channel)[2] == 0
end

-- dead tells that of a process whose claim has waited for longer than its time.
local function dead(channel, since, time)
  return now - since > tonumber(time) and deaf(channel)
end

-- Whoever waits first looks by itself when what stands in its way is over, and nobody else does. So when the first leaves, the next one
-- is told to look; and where those ahead of a claim that asks, as by a renewal, are deaf, it is told that it is the first. So many are
-- passed over at most.
local DEEP = 100

-- rouse has the first in line who hears look.
local function rouse()
  local i = count
  while i < n and i < count + DEEP do
    local who, d = at(i)
    local s, _, _, _, _, _, _, channel = string.match(d or '', RECORD)
    if who == enter then
      head = 1
      return
    elseif s == 'w' and tell(channel, string.format('g %s %d', who, foreign and 1 or wait)) then
      return
    end
    i = i + 1
  end
end

-- foremost tells whether nobody who hears waits ahead of the claim that asks.
local function foremost()
  local i = count
  while i < n and i < count + DEEP do
    local who, d = at(i)
    local s, _, _, _, _, _, _, channel = string.match(d or '', RECORD)
    if who == enter then
      return true
    elseif s == 'w' and not deaf(channel) then
      return false
    end
    i = i + 1
  end
  return false
end

-- settle goes along the line, behind those who are known to share, and lets in whoever may hold by the rule. A waiting process
-- that a message does not reach is dead or will join again: it is left out.
local function settle()
  if id or foreign then
    wait, why = redis.call('PTTL', K), foreign and 1 or 0
    return
  end
  local lasts = count > 0 and redis.call('PTTL', K) or 0
  if count > n or lasts < 0 then -- somebody has taken the name its end: those in line have theirs
    count, sum = 0, 0
  end
  local all, i, last, ahead = sum, count, 0, true
  if count == 0 then
    soon = nil
  else
    last = math.max(now + lasts, renewed)
    if renewed > 0 then
      soon = math.min(soon, renewed) -- the clock was set back since
    end
  end
  while i < n do
    local who, d = at(i)
    local s, k, w, l, time, ends, since, channel, info = string.match(d or '', RECORD)
    w, l, ends = tonumber(w), tonumber(l), tonumber(ends)
    local late = 2 * i > n
    if not s or s ~= 'w' and (not cover or ends <= now) then
      remove(who, late) -- its time is over
    elseif s == 'w' and ahead and all == 0 and rest() then
      if who == enter then
        head = 1
      end
      break
    elseif s == 'w' and all + w > l and who ~= enter and dead(channel, since, time) then
      remove(who, late) -- it would keep out those behind it for as long as those ahead of it share
    elseif s == 'w' and all + w > l then
      if ahead and who == enter then
        head = 1
      end
      ahead, all, i = false, all + w, i + 1
      if all >= ALL or k ~= 'p' or all >= largest then
        break
      end
    elseif s == 'w' and (k == 'm' or k == 'w') then
      local drawn, more = draw(), n > 1
      local heard = who == enter or tell(channel, string.format('h %s %.0f %d', who, drawn, more and 1 or 0))
      remove(who, late)
      if heard then
        promote(who, info, time, more, drawn)
        break
      end
    elseif s == 'w' and who ~= enter and not tell(channel, 'h ' .. who .. ' 0 1') then
      remove(who, late)
    else
      if s == 'w' then
        ends = now + time
        keep(who, table.concat({'h', k, w, l, time, ends, now, channel, info}, ' '))
        if who == enter then
          state = 2
        end
      end
      all, i = all + w, i + 1
      last, soon = math.max(last, ends), math.min(soon or ends, ends)
      if ahead then
        count, sum = i, all
      end
    end
  end
  if not id and last > 0 then
    redis.call('SET', K, COVER, 'PX', math.max(1, last - now))
    local note = string.format('%d %d %.0f', count, sum, soon)
    if note ~= noted then
      redis.call('HSET', H, '^', note)
    end
    v, cover, vacated = COVER, true, false
    wait = math.max(1, soon - now)
  elseif not id and v then
    redis.call('DEL', K)
    v, cover, vacated = false, false, false
  end
end

-- misfit tells whether permits stand here and others want to join, or the other way round.
local function misfit()
  if id and kind == 'p' then
    return true
  end
  while n > 0 do
    local who, d = at(0)
    if d then
      first, record = who, d
      return (string.sub(d, 3, 3) == 'p') ~= (kind == 'p')
    end
    remove(who)
  end
  return false
end

-- astray tells whether a claim that waits has a record and no place: somebody has deleted the line, or a full server has evicted it,
-- and others may have made a new one meanwhile. There are more records then than claims in line, which costs nothing to see. It goes, and
-- its process puts it in line anew. A user who may not ask for their number is told no.
local function astray()
  local records = redis.pcall('HLEN', H)
  if type(records) ~= 'number' or records - (d[1] and 1 or 0) - (d[4] and 1 or 0) - (d[6] and 1 or 0) <= n then
    return false
  end
  for _, who in ipairs(redis.call('LRANGE', W, 0, -1)) do
    if who == enter then
      return false
    end
  end
  return true
end

local joined = false -- the line just now, so that it is the last there
if id == enter then
  if string.sub(v, 27, 27) == '!' then
    state = 3
  else
    redis.call('PEXPIRE', K, ttl)
    stay(tonumber(counted))
    state, counter = 2, tonumber(counted) - odd
  end
elseif mine then
  local s, k, w, l, time, ends, since, channel, info = string.match(mine, RECORD)
  if s == 'b' then
    state = 3
  elseif s == 'w' and astray() then
    redis.call('HDEL', H, enter)
    state = 4
  elseif s == 'w' then
    keep(enter, table.concat({s, k, w, l, ttl, now + ttl, since, ARGV[11], ARGV[12]}, ' '))
    stay(tonumber(counted))
    redis.call('PEXPIRE', W, outlives)
    redis.call('PEXPIRE', H, outlives)
    state = 1
  elseif cover and tonumber(ends) > now then
    renewed = now + ttl
    keep(enter, table.concat({s, k, w, l, time, renewed, since, channel, info}, ' '))
    redis.call('PEXPIRE', W, outlives)
    redis.call('PEXPIRE', H, outlives)
    state = 2
  else
    remove(enter)
    state = 4
  end
elseif enter ~= '' and again then
  state = 4
elseif enter ~= '' then
  if (kind == 'm' or kind == 'w') and (not v or vacated) and n == 0 and not (open > now or vacated and due()) then
    promote(enter, ARGV[12], ARGV[9], false, draw()) -- nobody else is here
  elseif misfit() and (settle() or misfit()) then
    state = 5
  elseif queue or not id and not foreign then
    n = redis.call('RPUSH', W, enter)
    redis.call('HSET', H, enter, 'w ' .. kind .. ' ' .. ARGV[7] .. ' ' .. ARGV[8] .. ' ' .. ARGV[9] .. ' ' .. now + ttl .. ' ' .. now .. ' ' ..
      ARGV[11] .. ' ' .. ARGV[12])
    redis.call('PEXPIRE', W, outlives)
    redis.call('PEXPIRE', H, outlives)
    if kind == 'p' and limit > largest then
      largest = limit
      redis.call('HSET', H, '#', limit)
    end
    state, joined = 1, true
  else
    redis.call('PEXPIRE', W, outlives) -- a replica, whose word is old, refuses to write
  end
end

local holder = id
if not id or state == 1 or headless then
  settle()
end
if headless and id == holder then
  rouse()
end
if state == 1 and head == 0 and (n == 1 and (id or foreign) or not joined and foremost()) then
  head = 1
end
if state == 1 and not queue and not again then
  remove(enter, true)
  state = 0
end

if n > 0 and odd == 0 then
  if redis.call('INCR', F) == 1 then
    stay(us)
  end
elseif n == 0 and odd == 1 and redis.call('DECR', F) == 0 then
  redis.call('DEL', F) -- no token was drawn here
end
if id then
  local mark = string.sub(v, 27, 27)
  local want = n > 0 and '+' or '-'
  if mark ~= want and mark ~= '!' then
    redis.call('SETRANGE', K, 26, want)
  end
end
return {state, left, counter, wait, head, why, enter ~= '' and leave == '' and state < 2 and v or ''}
