-- look: who stands at a name, for people.
--
-- KEYS  1 the name: a hash   2 the counter of tokens   3 the line of fair locks   4 their places in it   5 our own notes
-- ARGV  1 how the keys that hold readers' own times begin
-- Returns the type at the name, its PTTL, the counter or '', the server's time in ms, the mode or '', and then for each claim
--   'h', its field, how often it is held, the PTTL of its time, its note or ''
--   'w', its field, '', '', its note       who waits, of ours
--   'f', its field, '', until when, ''     who waits, of a fair lock
local name, notes = KEYS[1], KEYS[5]
local kind = redis.call('TYPE', name).ok
local pttl = redis.call('PTTL', name)
local t = redis.call('TIME')
local counter, all = redis.pcall('GET', KEYS[2]) or '', redis.pcall('HGETALL', notes)
local r = {kind, pttl, counter, t[1] * 1000 + math.floor(t[2] / 1000), ''}
local function add(what, field, count, left, note)
  for _, v in ipairs({what, field, count, left, note}) do
    r[#r + 1] = v
  end
end
local line = redis.pcall('LRANGE', KEYS[3], 0, 999)
for _, asked in ipairs({{counter, KEYS[2], 'a counter'}, {line, KEYS[3], 'a list'}, {all, notes, 'a hash'}}) do
  local failed = type(asked[1]) == 'table' and asked[1].err
  if failed and string.sub(failed, 1, 9) ~= 'WRONGTYPE' then
    return asked[1]
  elseif failed or type(asked[1]) == 'string' and not string.find(asked[1], '^%d*$') then
    return redis.error_reply('CORRUPT ' .. asked[2] .. ': want ' .. asked[3] .. ', as Redisson or this library writes it')
  end
end
local told = {}
if kind == 'hash' and redis.call('HLEN', name) <= 10000 then
  local holders = redis.call('HGETALL', name)
  for i = 1, #holders, 2 do
    if holders[i] == 'mode' then
      r[5] = holders[i + 1]
    end
  end
  for i = 1, #holders, 2 do
    local field, left = holders[i], pttl
    if field ~= 'mode' then
      if r[5] ~= '' and string.sub(field, -6) ~= ':write' then
        left = -2
        for n = 1, math.min(tonumber(holders[i + 1]) or 0, 100) do
          left = math.max(left, redis.call('PTTL', ARGV[1] .. field .. ':rwlock_timeout:' .. n))
        end
      end
      told[field] = true
      add('h', field, holders[i + 1], left, redis.call('HGET', notes, field) or '')
    end
  end
end
for i = 1, #all, 2 do
  if not told[all[i]] and string.sub(all[i + 1], 1, 1) == 'w' then
    add('w', all[i], '', '', all[i + 1])
  end
end
for _, field in ipairs(line) do
  add('f', field, '', redis.call('ZSCORE', KEYS[4], field) or '', '')
end
return r
