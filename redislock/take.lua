-- take: a free name for an exclusive claim.
--
-- KEYS  1 the name   2 its counter of tokens
-- ARGV  1 the value that says who holds: il1:ID- and information   2 TTL in ms
--       3 the server's time in µs when this connection was made, or 0
-- Returns the counter, if the claim is held now: its tokens are the 32 up to there; 0 if a line stands there and the long
-- script must decide; or the value that stands there.
--
-- The counter moves by 64 a grant, so that its last bit is free to say that a line stands at the name. It must pass every
-- token ever drawn, also when the server has lost it: then it is below the server's time, which no counter overtakes at
-- less than 15,000 grants a second. A counter can be lost with the connection (restart, failover) or without it
-- (eviction, DEL); so one above the time at which the connection was made is in order, and only one below asks for
-- the time.
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('GET', KEYS[1])
end
local c = redis.call('INCRBY', KEYS[2], 64)
if c % 2 == 1 then -- the holder has gone without a word, and others stand in line
  redis.call('DEL', KEYS[1])
  return 0
end
local floor = tonumber(ARGV[3])
if floor == 0 or c < floor then
  local t = redis.call('TIME')
  local us = t[1] * 1000000 + t[2]
  if c < us then
    c = us - us % 64 + 64
    redis.call('SET', KEYS[2], c)
  end
end
return c
