-- standing: at which of many names something stands on this master. Most names that ever were locked are free.
--
-- KEYS  for each name: the name, its line
-- Returns the numbers of those names.
local all = {}
for i = 1, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[i], KEYS[i + 1]) > 0 then
    all[#all + 1] = (i + 1) / 2
  end
end
return all
