-- hold: renews claims on this master, up to a hundred at once, and takes the master in for claims that are held without it.
--
-- KEYS  1 the vote of this master   2 at least the largest counter that it has, of any name   3… the names, those last for which it
--       may be taken in; then for each of these its counter, its line and its claims
-- ARGV  1 TTL in ms   2 the vote that this master has in the set of the client   3 how many names   4… for each name the beginning of
--       its value: ilq1:ID, and where the master may be taken in the whole value; then for each of these the token, and the largest
--       counter that the client knows to be there
-- Returns 1, or 0 where the master has no vote and so counts for nobody yet; then for each claim that does not have the master its
-- number, times 2, plus 1 if it was broken; and its counter where the master could have been taken in, else 0.
--
-- A master that belongs to another set by now renews for nobody: a majority of that set may be none of the former one.
-- A key that is gone is made again only where the client knows that it was gone, and so does not count it until a later renewal: somebody
-- may have held the name in between. On a master that waits for its vote whoever holds comes before its line, which nobody is let in from;
-- one that votes gives a free name to the first in line. Where the counter is larger than the client knows, the order was held up, or
-- somebody had this master in between: the client hears of it and asks again. Where somebody else has written a counter, nobody can tell:
-- the master is not taken in, nothing is changed, and the other names are renewed.
local r = redis.call('MGET', unpack(KEYS))
local votes = r[1] == ARGV[2]
if r[1] and not votes then
  return redis.error_reply('NOVOTE this master has no vote among the masters of this program')
end
local names = tonumber(ARGV[3])
local old = names - (#KEYS - 2 - names) / 3 -- so many are only renewed
local function counter(key, text) -- as in take; MGET does not tell what is no string
  local c = tonumber(text or '0')
  if c and c % 1 == 0 and c < 9007199254740000 and (text or redis.call('EXISTS', key) == 0) then
    return c
  end
end
local high, reply = old < names and counter(KEYS[2], r[2]), {votes and 1 or 0}
for i = 1, names do
  local K, v, want = KEYS[i + 2], r[i + 2], ARGV[i + 3]
  local head, broken, count, odd, sound, at, args = want, 0, 0, 0, true
  if i > old then
    at, args = 2 + names + (i - old) * 3, 3 + names + (i - old) * 2 -- the last of its keys and arguments
    head = string.sub(want, 1, 27)
    count = counter(KEYS[at - 2], r[at - 2])
    sound, count = high and count, count or 0
    odd = count % 2
    count = count - odd
  end
  local mine = v and string.sub(v, 1, 27) == head
  if mine and string.sub(v, 28, 28) == '!' then
    mine, broken = false, 1
  elseif mine then
    redis.call('PEXPIRE', K, ARGV[1])
  elseif i > old and sound and not v and count <= tonumber(ARGV[args]) and (odd == 0 or not votes) then
    mine = redis.call('SET', K, head .. (odd == 1 and '+' or '-') .. string.sub(want, 29), 'NX', 'PX', ARGV[1])
  end
  if not (mine and sound) then
    reply[#reply + 1] = i * 2 + broken
    reply[#reply + 1] = count
  elseif i > old then
    local token, alone = tonumber(ARGV[args - 1]), false
    if odd == 1 and redis.pcall('ZREM', KEYS[at - 1], string.sub(head, 6)) == 1 then -- it waited here when it got the others
      redis.pcall('HDEL', KEYS[at], string.sub(head, 6))
      alone = redis.call('EXISTS', KEYS[at - 1]) == 0
    end
    if alone then
      odd = 0
      redis.call('SETRANGE', K, 27, '-')
    end
    if alone or count < token then -- as in raise
      redis.call('SET', KEYS[at - 2], math.max(count, token) + odd)
    end
    if token > high then
      high = token + 1000000
      redis.call('SET', KEYS[2], high)
    end
  end
end
return reply
