-- share: renews claims that share, up to a hundred at once.
--
-- KEYS  for each name: the name, its line, its claims
-- ARGV  1 TTL in ms   2 how long a line outlives its last visitor, in ms   3… for each name: how many of its claims, and their IDs
-- Returns the numbers of the claims, counted through all names, that were not renewed: the long script must look.
--
-- Who waits for somebody's time to be over looks by itself, so nobody goes along the line here.
local ttl, keep = tonumber(ARGV[1]), ARGV[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local ends = string.format('%.0f', now + ttl)
local look, i, arg = {}, 0, 3
for k = 1, #KEYS, 3 do
  local K, W, H = KEYS[k], KEYS[k + 1], KEYS[k + 2]
  local n = tonumber(ARGV[arg])
  local ids = {}
  for j = 1, n do
    ids[j] = ARGV[arg + j]
  end
  arg = arg + n + 1
  local records = redis.pcall('GETRANGE', K, '0', '10') == 'il1:shared' and redis.pcall('HMGET', H, '^', unpack(ids)) or {}
  local new = {}
  for j = 1, n do
    i = i + 1
    local head, stop, rest = string.match(records[j + 1] or '', '^(h %a %d+ %d+ %d+ )(%d+)( .*)$')
    if head and tonumber(stop) > now then
      new[#new + 1] = ids[j]
      new[#new + 1] = head .. ends .. rest
    else
      look[#look + 1] = i
    end
  end
  if #new > 0 then
    -- A full memory denies no write that comes after a first one which needs none. The time before which nobody ends, as line.lua
    -- notes it, is no later than this, unless the clock was set back since.
    redis.call('HDEL', H, tonumber(string.match(records[1] or '', '%d+$') or '0') > now + ttl and '^' or '')
    redis.call('HSET', H, unpack(new))
    redis.call('PEXPIRE', W, keep)
    redis.call('PEXPIRE', H, keep)
    if redis.call('PTTL', K) < ttl then
      redis.call('PEXPIRE', K, ARGV[1])
    end
  end
end
return look
