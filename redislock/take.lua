-- take: free names for exclusive claims, up to a hundred at once.
--
-- KEYS  for each claim: the name, its counter of tokens
-- ARGV  1 the server's time in µs when this connection was made, or 0
--       then for each claim: the value that says who holds, il1:ID- and information; TTL in ms
-- Returns, for one claim alone or for several as a list: the counter, if the claim is held now, whose tokens are the 32 up
-- to there; 0 if the long script must decide; or the value that stands there.
--
-- The counter moves by 64 a grant, so that its last bit is free to say that a line stands at the name. It must pass every
-- token ever drawn, also when the server has lost it: then it is below the server's time, which no counter overtakes at
-- less than 15,000 grants a second. A counter can be lost with the connection (restart, failover) or without it
-- (eviction, DEL); so one above the time at which the connection was made is in order, and only one below asks for
-- the time.
local floor = tonumber(ARGV[1])
local function take(i)
  local name, counter = KEYS[2 * i - 1], KEYS[2 * i]
  if not redis.call('SET', name, ARGV[2 * i], 'NX', 'PX', ARGV[2 * i + 1]) then
    local v = redis.pcall('GET', name)
    return type(v) == 'string' and v or 0
  end
  local c = redis.call('INCRBY', counter, '64')
  if c % 2 == 1 then -- the holder has gone without a word, and others stand in line
    redis.call('DEL', name)
    return 0
  end
  if floor == 0 or c < floor then
    local t = redis.call('TIME')
    local us = t[1] * 1000000 + t[2]
    if c < us then
      c = us - us % 64 + 64
      redis.call('SET', counter, c)
    end
  end
  return c
end
if #KEYS == 2 then
  return take(1)
end
local all = {}
for i = 1, #KEYS / 2 do
  all[i] = take(i)
end
return all
