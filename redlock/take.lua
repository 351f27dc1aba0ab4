-- take: a free name on this master, for an exclusive claim.
--
-- KEYS  1 the name   2 its counter of tokens   3 the vote of this master   4 its floor: what it draws is above
--       5 at least the largest counter that it has drawn, of any name
-- ARGV  1 the value that says who holds   2 TTL in ms   3 the counter that the client proposes, a multiple of 64
--       4 the vote that this master has in the set of the client
-- Returns the counter, if the claim has this master now; 0 if a line stands there and the long script must decide; or the
-- value that stands there.
--
-- All masters are offered the same counter, so they answer the same one, unless one of them was ahead. Its last bit says
-- that a line stands at the name. A proposal that is more than a minute ahead of the counter is held against the clock of
-- this master: one client whose clock is wrong must not use up the numbers.
local r = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
if r[3] ~= ARGV[4] then
  return redis.error_reply('NOVOTE this master has no vote among the masters of this program')
end
if r[1] then
  return r[1]
end
local had, floor, high = tonumber(r[2] or ''), tonumber(r[4] or '0'), tonumber(r[5] or '0')
if not (had and floor and high) or had % 1 + floor % 1 + high % 1 ~= 0 or math.max(had, floor, high) >= 9007199254740000 then
  -- There is none yet, or somebody else has written there. Nothing is changed then, and the error names the key.
  for _, key in ipairs({KEYS[2], KEYS[4], KEYS[5]}) do
    local text = redis.pcall('GET', key) or '0' -- MGET does not tell what is no string
    if type(text) == 'table' and string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then
      return text
    elseif type(text) == 'table' or not string.find(text, '^%d+$') or tonumber(text) >= 9007199254740000 then -- 2^53: no token is rounded
      return redis.error_reply('CORRUPT ' .. key .. ': want a counter, as this library writes it')
    end
  end
  had = had or 0
end
if had % 2 == 1 then -- the holder has gone without a word, and others stand in line
  return 0
end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('GET', KEYS[1]) -- WRONGTYPE
end
local c, text = tonumber(ARGV[3]), ARGV[3]
had = math.max(had, floor) -- it may have lost the counter
if c < had + 64 or c > had + 60000000 then
  if c > had + 60000000 then
    local t = redis.call('TIME')
    c = math.min(c, (t[1] + 86400) * 1000000 + t[2] - t[2] % 64)
  end
  c = math.max(had + 64, c)
  text = c
end
redis.call('SET', KEYS[2], text)
if c > high then
  redis.call('SET', KEYS[5], c + 1000000) -- a second ahead, so that few grants write it
end
return c
