-- standing: which of many names somebody holds or waits for. Most names that ever were locked are free.
--
-- KEYS  for each name: the name, its line
-- Returns the numbers of those names.
local write = redis.pcall('LREM', KEYS[2], 1, '') -- removes nothing: a replica refuses it, and what that knows is old
if type(write) == 'table' and string.find(write.err, 'READONLY', 1, true) then
  return write
end
local all = {}
for i = 1, #KEYS, 2 do
  -- An error says that something stands there, which the script look names.
  if redis.pcall('GETRANGE', KEYS[i], '0', '0') ~= '' or redis.pcall('LLEN', KEYS[i + 1]) ~= 0 then
    all[#all + 1] = (i + 1) / 2
  end
end
return all
