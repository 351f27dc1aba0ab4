-- raise: a claim that has a majority makes one token hold on all its masters, and renews itself there.
--
-- KEYS  1 the name   2 its counter   3 the vote of this master   4 unused
--       5 at least the largest counter that this master has, of any name
-- ARGV  1 the beginning of its value: ilq1:ID   2 the token   3 TTL in ms
--       4 the vote that this master has in the set of the client
-- Returns the counter, if the claim still has this master; 0 if not; -1 if it was broken.
--
-- On the condition rests the order of tokens: any two majorities share a master, and there this token was stored before the
-- claim's value left, so whoever came after it there has a larger one, whatever clocks do.
local r = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[5])
local v = r[1]
if r[3] ~= ARGV[4] then
  return redis.error_reply('NOVOTE this master has no vote among the masters of this program')
end
if not v or string.sub(v, 1, 27) ~= ARGV[1] then
  return 0
end
if string.sub(v, 28, 28) == '!' then
  return -1
end
local c, t, high = tonumber(r[2] or ''), tonumber(ARGV[2]), tonumber(r[4] or '0')
if not (c and high) or c % 1 + high % 1 ~= 0 or math.max(c, high) >= 9007199254740000 then -- as in take
  for _, key in ipairs({KEYS[2], KEYS[5]}) do
    local text = redis.pcall('GET', key) or '0'
    if type(text) == 'table' and string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then
      return text
    elseif type(text) == 'table' or not string.find(text, '^%d+$') or tonumber(text) >= 9007199254740000 then
      return redis.error_reply('CORRUPT ' .. key .. ': want a counter, as this library writes it')
    end
  end
  c = c or 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[3]) -- first: a full memory denies no write that comes after it
if c < t then
  c = t + c % 2
  redis.call('SET', KEYS[2], c)
  if t > high then
    redis.call('SET', KEYS[5], t + 1000000)
  end
end
return c - c % 2
