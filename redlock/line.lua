-- line: everything on one master that is more than a free name: a claim leaves, another joins or steps back, and whoever
-- is first in line then gets this master.
--
-- KEYS  1 the name   2 its counter   3 its line: IDs by ticket   4 its claims: ID -> record
--       5 the vote of this master   6 its floor: what it draws is above   7 at least the largest counter that it has drawn
-- ARGV  1 ID that leaves, or ''
--       2 '1': other programs use the name as well, seen or not
--       3 how long the line outlives its last visitor, in ms
--       4 the counter that the client proposes for the next grant, a multiple of 64
--       5 ID that joins or asks for its state; the rest is left out if none does
--       6 TTL in ms   7 '1': it stays in line if it cannot have this master   8 channel of its process
--       9 its ticket, 16 digits   10 information
--      11 counter of a grant: the claim steps back from it if one with an older ticket waits; '0': it keeps what it has;
--         '-1': as '0', but what it has is granted anew
--      12 the vote that this master has in the set of the client
-- Returns 1 if the claim that left had this master and nobody waits; else state, left, counter, wait, head, why, older, value,
-- last.
--   state    0 not in line, 1 waits, 2 has this master, 3 broken, 4 nothing of it was looked at, since this master has no vote,
--            5 the same, since what stands beside the name is damaged, as the value says; whoever left has left all the same
--   left     1 if the claim that left had this master until now
--   counter  now; of a claim that has this master it is that of its grant, or of its raise
--   wait     of the head of the line: ms until its state may change by time alone, or -1
--   head     1 if nobody waits ahead of it
--   why      0 ours stands in its way, 1 another program's, 2 a gap left for other programs
--   older    1 if it has this master and one with an older ticket waits
--   value    at the name, or ''
--   last     the largest ticket in line, or '': nobody who has seen it takes a smaller one from now on
--
-- The line is in order of tickets, the same on every master, whatever order claims arrive in. When one joins behind a
-- holder with a newer ticket, that holder's process is told; if it has no majority yet it steps back. So all masters turn
-- to the oldest claim, and there is no deadlock: M. Maekawa, "A square root N algorithm for mutual exclusion in
-- decentralized systems", 1985.
--
-- What holds after each run, and lets the short script be short: if and only if the line is not empty, the counter is odd,
-- and the value of a claim of ours has a + behind its ID.
--
-- A server that takes no writes refuses a script's first one, and one whose memory is full too, if that may need memory; neither
-- refuses what comes after another one. So whoever leaves or stands here already begins with a write that needs none, an HDEL of
-- nothing: it leaves and hands on, and keeps its place. Whoever is new is denied. And nobody hears of a grant before a write.
local K, F, W, H = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leave, enter = ARGV[1], ARGV[5] or ''

if enter == '' and redis.pcall('GETRANGE', K, '0', '27') == 'ilq1:' .. leave .. '-' then
  redis.call('DEL', K)
  return 1
end

-- A record: w ttl stop since channel set info. Who is not renewed until its stop keeps its place, and is shown no more.
local RECORD = '^w (%d+) %d+ %d+ (%S+) (%S+) (.*)$'

local ticket, set, proposal = ARGV[9], ARGV[12], tonumber(ARGV[4])
local got = redis.call('MGET', K, F, KEYS[5], KEYS[6], KEYS[7])
local v, count, vote, floor, high = got[1], tonumber(got[2] or ''), got[3], tonumber(got[4] or '0'), tonumber(got[5] or '0')
local sound = count and floor and high and count % 1 + floor % 1 + high % 1 == 0
  and math.max(count, floor, high) < 9007199254740000 -- 2^53: no token is rounded
count, floor, high = count or 0, floor or 0, high or 0
local odd = count % 2
count = count - odd
local drawn = false -- the counter of a grant, which is to be written

-- The usual turn: one leaves, may stand again behind the others, and the first in line gets this master. It makes no
-- functions, asks nothing twice and lets numbers be the text that they come as, which is half of what the rest of this
-- script takes for it. Whatever is not quite usual is left to the rest.
if leave ~= '' and odd == 1 and sound and v and string.sub(v, 1, 28) == 'ilq1:' .. leave .. '+' and ARGV[2] == '0'
  and proposal >= count + 64 and proposal <= count + 60000000 and proposal > floor and proposal <= high and (enter == '' or vote == set and ARGV[7] == '1' and ARGV[11] == '0') then
  local call, c = redis.call, ARGV[4]
  local top = redis.pcall('ZRANGE', W, '0', '0', 'WITHSCORES') -- what answers an error here and below is left to the rest, too
  local who, place = top[1], top[2] or ''
  local behind = who and enter ~= '' and call('ZRANGE', W, '-1', '-1', 'WITHSCORES')
  local last = behind and behind[2] or place
  local d = redis.pcall('HMGET', H, who or '', '*', enter)
  local time, channel, theirs, info = string.match(d[1] or '', RECORD)
  if time and theirs == vote and not d[2] and not d[3] and #place == 16 and (enter == '' or #last == 16 and ticket > last) then
    local more = enter ~= '' or call('ZCARD', W) > 1
    call('HDEL', H, '')
    call('SET', F, more and string.sub(c, 1, -2) .. string.sub(c, -1) + 1 or c)
    count, drawn = proposal, true
    if call('PUBLISH', channel, 'h ' .. who .. ' ' .. c .. (more and ' 1' or ' 0')) > 0 then
      v = 'ilq1:' .. who .. (more and '+' or '-') .. place .. ' ' .. channel .. ' ' .. info
      call('SET', K, v, 'PX', time)
      if enter ~= '' then -- before the other goes: a key that is empty for a moment comes back without an end
        local t = call('TIME')
        local now = t[1] * 1000 + math.floor(t[2] / 1000)
        call('ZADD', W, ticket, enter)
        call('HSET', H, enter, 'w ' .. ARGV[6] .. ' ' .. now + ARGV[6] .. ' ' .. now .. ' ' .. ARGV[8] .. ' ' .. set .. ' ' .. ARGV[10])
      end
      call('ZREM', W, who)
      call('HDEL', H, who)
      if proposal % 1024 == 0 then -- now and then will do
        call('PEXPIRE', W, ARGV[3])
        call('PEXPIRE', H, ARGV[3])
      end
      if enter == '' then
        return {0, 1, proposal, tonumber(time), 0, 0, 0, '', ''}
      end
      return {1, 1, proposal, tonumber(time), behind[1] == who and 1 or 0, 0, 0, v, ticket}
    end
  end
end

-- A master that has lost its memory, or that belongs to another set by now, gives itself to nobody.
if enter ~= '' and vote ~= set then
  if leave == '' then
    return redis.error_reply('NOVOTE this master has no vote among the masters of this program')
  end
  enter, set = '', nil -- whoever leaves, leaves
end

-- Who stands at the name: nobody, one of ours (id), or a value of another program, which is never touched.
if not v then
  v = redis.pcall('GET', K) -- which tells what is no string
end
if type(v) == 'table' then
  if enter ~= '' then
    return v -- WRONGTYPE
  end
  v = '?'
end
local id = v and #v > 45 and string.sub(v, 1, 5) == 'ilq1:' and string.sub(v, 6, 27) or nil
local foreign = v and not id
if foreign and enter ~= '' and string.find(v, '^ilq%d+:') then
  return redis.error_reply('NEWLAYOUT the value at this name is of a layout that this program does not know')
end

local mixed, outlives = ARGV[2] == '1', ARGV[3]
local ttl, queue, channel, info = ARGV[6], ARGV[7] == '1', ARGV[8], ARGV[10]
local back = tonumber(ARGV[11] or '0')

-- What somebody else has written beside the name: which key, and what belongs there. Whoever leaves leaves all the same, and hands
-- nothing on; nothing else is done.
local damage
local function corrupt(key, want)
  damage = damage or 'CORRUPT ' .. key .. ': want ' .. want .. ', as this library writes it'
end
local function sane(reply, key, want)
  if type(reply) ~= 'table' or not reply.err then
    return reply
  elseif string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then
    error(reply)
  end
  corrupt(key, want)
  return {}
end
if not sound then
  for _, key in ipairs({F, KEYS[6], KEYS[7]}) do
    local text = sane(redis.pcall('GET', key), key, 'a counter') or '0' -- MGET does not tell what is no string
    if type(text) == 'string' and (not string.find(text, '^%d+$') or tonumber(text) >= 9007199254740000) then
      corrupt(key, 'a counter')
    end
  end
end
-- The head of the line and its ticket, as long as they are known.
local t = sane(redis.pcall('ZRANGE', W, '0', '0', 'WITHSCORES'), W, 'a sorted set')
local first, place, looked = t[1], tonumber(t[2]), true
-- What a claim that joins has on record here, and the note of other programs.
t = sane(redis.pcall('HMGET', H, enter, '*'), H, 'a hash')
local mine, noted = enter ~= '' and t[1], t[2] or '0 0 0 0'
if not string.find(noted, '^%d+ %d+ %d+ %d+$') then
  corrupt(H .. ' *', 'four numbers')
end
if damage then
  local left = 0
  if leave ~= '' and id == leave then
    left = string.sub(v, 28, 28) ~= '!' and 1 or 0
    redis.call('DEL', K)
  elseif leave ~= '' then
    sane(redis.pcall('ZREM', W, leave), W, '')
    sane(redis.pcall('HDEL', H, leave), H, '')
  end
  if enter ~= '' and leave == '' then
    return redis.error_reply(damage)
  end
  return {ARGV[5] and (set and 5 or 4) or 0, left, 0, -1, 0, 0, 0, ARGV[5] and damage or '', ''}
end
if leave ~= '' or mine or id and id == enter then
  redis.call('HDEL', H, '')
end

local us
local function ms()
  if not us then
    local t = redis.call('TIME')
    us = t[1] * 1000000 + t[2]
  end
  return math.floor(us / 1000)
end

local function draw() -- as in take
  local had = math.max(count, floor)
  local c, p = had + 64, proposal
  if p > c then
    if p > had + 60000000 then
      p = math.min(p, (ms() + 86400000) * 1000)
      p = p - p % 64
    end
    c = math.max(c, p)
  end
  count, drawn = c, true
end

-- Foreign programs: when they were last seen, by the clock of this master; and by that of the clients, the same on every
-- master, so that gaps fall together: when the last gap was left to them; handoffs since; and when it ends; all ms.
local seen, gap, handoffs, open
local function others()
  if not seen then
    local a, b, c, d = string.match(noted, '^(%d+) (%d+) (%d+) (%d+)$')
    seen, gap, handoffs, open = tonumber(a), tonumber(b), tonumber(c), tonumber(d)
  end
end
local function note()
  redis.call('HSET', H, '*', string.format('%.0f %.0f %.0f %.0f', seen, gap, handoffs, open))
  redis.call('PEXPIRE', H, outlives)
end
if foreign then
  others()
  if math.abs(ms() - seen) > 1000 then
    seen = ms()
    if gap == 0 then
      gap = math.floor(proposal / 1000)
    end
    note()
  end
end

local state, left, wait, head, why, older = 0, 0, -1, 0, 0, 0
local vacated = false -- the value at the name is of a claim that has just left
local headless = false -- the first of those who wait has just left

local function top()
  if not looked then
    local t = redis.call('ZRANGE', W, '0', '0', 'WITHSCORES')
    first, place, looked = t[1], tonumber(t[2]), true
  end
  return first
end
local function remove(who)
  redis.call('ZREM', W, who)
  redis.call('HDEL', H, who)
  looked = false
end
local function stand()
  redis.call('ZADD', W, ticket, enter)
  local since = mine and string.match(mine, '^w %d+ %d+ (%d+)') or ms()
  redis.call('HSET', H, enter, string.format('w %s %.0f %.0f %s %s %s', ttl, ms() + ttl, since, channel, set, info))
  redis.call('PEXPIRE', W, outlives)
  redis.call('PEXPIRE', H, outlives)
  state, looked = 1, false
end
local function promote(who, when, time, where, what)
  v = 'ilq1:' .. who .. '-' .. when .. ' ' .. where .. ' ' .. what
  redis.call('SET', K, v, 'PX', time)
  id, vacated = who, false
  if who == enter then
    state = 2
  end
end

if leave ~= '' then
  if id == leave then
    if string.sub(v, 28, 28) ~= '!' then
      left = 1
    end
    id, vacated = nil, true
  else
    headless = first == leave
    remove(leave)
  end
end

-- rest leaves the name free for a while, if it is time to, and tells the head of the line when to come back.
local function rest()
  others()
  if seen == 0 and not mixed then
    return false
  end
  if open > ms() and open - ms() <= 100 then -- later, it is of a clock that was set back since
    wait, why = open - ms(), 2
    return true
  end
  if not vacated or not mixed and ms() - seen > 60000 then
    return false
  end
  handoffs = handoffs + 1
  local at = math.floor(proposal / 1000)
  if handoffs < 32 and at - gap < 1000 then
    note()
    return false
  end
  local length = math.max(2, math.min(100, math.floor((at - gap) / 4)))
  while true do
    local who = top()
    if not who then
      return false
    end
    local where = string.match(redis.call('HGET', H, who) or '', '^w %d+ %d+ %d+ (%S+) ')
    if where and (who == enter or redis.call('PUBLISH', where, 'g ' .. who .. ' ' .. length) > 0) then
      break
    end
    remove(who)
  end
  gap, handoffs, open, wait, why = at, 0, ms() + length, length, 2
  note()
  return true
end

-- settle gives this master to the head of the line, if it is free. A process that a message does not reach is dead or will
-- join again: it is left out.
local function settle()
  while top() and not rest() and top() do
    local who, when = first, place
    local time, where, theirs, what = string.match(redis.call('HGET', H, who) or '', RECORD)
    remove(who)
    if time and theirs == vote then
      if not drawn then
        draw()
      end
      if who == enter or redis.call('PUBLISH', where, string.format('h %s %.0f %d', who, count, top() and 1 or 0)) > 0 then
        promote(who, string.format('%016.0f', when), time, where, what)
        wait = tonumber(time)
        break
      end
    end
  end
  if v and vacated then
    redis.call('DEL', K)
    v, vacated = false, false
  end
end

-- Whoever waits first looks by itself when what stands in its way is over, and nobody else does. So when the first leaves, the next one
-- is told to look; and where those ahead of a claim that asks, as by a renewal, do not listen, it is told that it is the first. So many
-- are passed over at most.
local DEEP = 100

-- ahead returns a claim in line by its place, and the channel of its process, or ''.
local function ahead(i)
  local who = redis.call('ZRANGE', W, i, i)[1]
  return who, who and string.match(redis.call('HGET', H, who) or '', '^w %d+ %d+ %d+ (%S+) ') or ''
end

-- rouse has the first in line who hears look.
local function rouse()
  for i = 0, DEEP - 1 do
    local who, where = ahead(i)
    if not who or who == enter or where ~= '' and redis.call('PUBLISH', where, 'g ' .. who .. ' 1') > 0 then
      return
    end
  end
end

-- foremost tells whether nobody who hears waits ahead of the claim that asks. A user who may not ask who does is told no.
local function foremost()
  for i = 0, DEEP - 1 do
    local who, where = ahead(i)
    if not who or who == enter then
      return who ~= nil
    elseif where ~= '' and redis.pcall('PUBSUB', 'NUMSUB', where)[2] ~= 0 then
      return false
    end
  end
  return false
end

-- elder is the first in line if its ticket is older than that of the claim that has this master.
local function elder()
  if not top() then
    return nil
  end
  local ours = tonumber(string.sub(v, 29, 44))
  return ours and (place < ours or place == ours and first < id) and first or nil
end

if enter ~= '' then
  if id == enter then
    if string.sub(v, 28, 28) == '!' then
      state = 3
    elseif back == count and elder() then
      stand()
      id, vacated = nil, true
    else
      state = 2
      if back < 0 then
        draw()
      end
      promote(enter, ticket, ttl, channel, info)
    end
  else
    if mine and string.sub(mine, 1, 1) == 'b' then
      state = 3
    elseif not mine and (not v or vacated) and redis.call('EXISTS', W, H) == 0 then
      draw()
      promote(enter, ticket, ttl, channel, info) -- nobody else is or was here
      first, looked = nil, true
    elseif mine or queue or not id and not foreign then
      stand()
    end
  end
end

local holder = id
if not id and not foreign then
  settle()
end
if headless and id == holder then
  rouse()
end

if state == 1 then
  if top() == enter or mine and foremost() then
    head = 1
  end
  if not queue then
    remove(enter)
    state = 0
  elseif head == 1 then
    if wait < 0 and (id or foreign) then
      wait, why = redis.call('PTTL', K), foreign and 1 or 0
    end
    if id and elder() then
      redis.call('PUBLISH', string.match(v, '^%S+ (%S+)'), 'i ' .. id)
    end
  end
elseif state == 2 and elder() then
  older = 1
end

local stands = top() and 1 or 0
if drawn or stands ~= odd then
  redis.call('SET', F, count + stands)
end
if drawn and count > high then
  redis.call('SET', KEYS[7], count + 1000000)
end
if id then
  local mark = string.sub(v, 28, 28)
  local want = stands == 1 and '+' or '-'
  if mark ~= want and mark ~= '!' then
    redis.call('SETRANGE', K, 27, want)
    v = string.sub(v, 1, 27) .. want .. string.sub(v, 29)
  end
end
if ARGV[5] and not set then
  state = 4
end
local behind = stands == 1 and redis.call('ZRANGE', W, '-1', '-1', 'WITHSCORES') or {}
return {state, left, count, wait, head, why, older, enter ~= '' and state < 2 and v or '',
  behind[2] and string.format('%016.0f', behind[2]) or ''}
