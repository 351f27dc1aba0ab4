-- standing: which of many names somebody holds. Most names that ever were locked are free.
--
-- KEYS  the names
-- Returns the numbers of those names.
local write = redis.pcall('SETRANGE', KEYS[1], '0', '') -- changes nothing: a replica refuses it, and what that knows is old
if type(write) == 'table' and string.find(write.err, 'READONLY', 1, true) then
  return write
end
local all = {}
local SOME = 50 -- EXISTS counts those that are there in one go
for from = 1, #KEYS, SOME do
  local to = math.min(from + SOME - 1, #KEYS)
  if redis.pcall('EXISTS', unpack(KEYS, from, to)) ~= 0 then -- or it is refused to a user who may not ask
    for i = from, to do
      if redis.pcall('GETRANGE', KEYS[i], '0', '0') ~= '' then -- an error says that something stands there, which the script look names
        all[#all + 1] = i
      end
    end
  end
end
return all
