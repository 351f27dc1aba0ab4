-- guard: raises the highest token seen of a name, and goes on only with one that is not smaller.
--
-- KEYS  1 where the highest token of the name stands   then the keys of what is guarded
-- ARGV  1 the token, a decimal number   then the arguments of what is guarded
-- Returns the error STALE and the highest token, or what the guarded text returns, which sees its own KEYS and ARGV only.
--
-- Numbers of Lua are exact up to 2^53 and some stores have larger tokens, so they are compared as text.
local highest, token = redis.call('GET', KEYS[1]) or '0', ARGV[1]
if #token < #highest or #token == #highest and token < highest then
  return redis.error_reply('STALE ' .. highest)
end
if token ~= highest then
  redis.call('SET', KEYS[1], token)
end
local function guarded(KEYS, ARGV)
--BODY
end
local keys, arguments = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 2, #ARGV do arguments[i - 1] = ARGV[i] end
return guarded(keys, arguments)
