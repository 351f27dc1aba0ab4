-- take: free names for exclusive claims, up to a hundred at once.
--
-- KEYS  for each claim: the name, its counter of tokens
-- ARGV  for each claim: the value that says who holds, il1:ID- and information; TTL in ms
--       and at the end how long the counter outlives its last visitor, in ms; '0': for ever
-- Returns, for one claim alone or for several as a list: the counter, if the claim is held now, whose tokens are the 32 up
-- to there; 0 if the long script must decide; or the value that stands there.
--
-- The counter moves by 64 a grant, so that its last bit is free to say that a line stands at the name. It must pass every
-- token ever drawn, also by a server that has lost it (restart, failover, eviction, DEL), and also by another server: for a
-- moment, a master that comes back and the one that took its place both grant. So no grant goes without the server's
-- time, which no counter overtakes at less than 15,000 grants a second.
--
-- To give the counter its time anew costs as much as the rest, so only the grant does that with which the counter passes into another
-- eighth of that time. It then goes when the server's clock is past it by that time: one that is ahead of the clock, which was set back,
-- or because many drew within a moment, stays so much longer.
local us
local life = tonumber(ARGV[#ARGV])
local eighth = life * 125 -- in µs
local function take(i)
  local name, counter = KEYS[2 * i - 1], KEYS[2 * i]
  if not redis.call('SET', name, ARGV[2 * i - 1], 'NX', 'PX', ARGV[2 * i]) then
    local v = redis.pcall('GET', name)
    return type(v) == 'string' and v or 0
  end
  local c = redis.pcall('INCRBY', counter, '64')
  if type(c) ~= 'number' or c >= 9007199254740000 then -- 2^53; somebody else has written there
    redis.call('DEL', name)
    if type(c) == 'number' or string.find(c.err, 'WRONGTYPE', 1, true) or string.find(c.err, 'integer', 1, true) or string.find(c.err, 'overflow', 1, true) then
      return redis.error_reply('CORRUPT ' .. counter .. ': want a counter, as this library writes it')
    end
    return c
  end
  if c % 2 == 1 then -- the holder has gone without a word, and others stand in line
    redis.call('DEL', name)
    return 0
  end
  if not us then
    local t = redis.call('TIME')
    us = t[1] * 1000000 + t[2]
  end
  local before = c - 64
  if c < us then
    c = us - us % 64 + 64
    redis.call('INCRBY', counter, c - before - 64)
  end
  if life > 0 and math.floor(before / eighth) < math.floor(c / eighth) then
    redis.call('PEXPIRE', counter, life + math.max(0, math.floor((c - us) / 1000)))
  end
  return c
end
if #KEYS == 2 then
  return take(1)
end
local all = {}
for i = 1, #KEYS / 2 do
  all[i] = take(i)
  if type(all[i]) == 'table' then
    return all[i] -- each is asked for alone then
  end
end
return all
