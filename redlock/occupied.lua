-- occupied: at which of many names something stands on this master. Most names that ever were locked are free.
--
-- KEYS  for each name: the name, its line
-- Returns the numbers of those names.
local all = {}
local SOME = 50 -- keys, which EXISTS counts in one go: most are not there
for from = 1, #KEYS, SOME do
  local to = math.min(from + SOME - 1, #KEYS)
  if redis.call('EXISTS', unpack(KEYS, from, to)) > 0 then
    for i = from, to, 2 do
      if redis.call('EXISTS', KEYS[i], KEYS[i + 1]) > 0 then
        all[#all + 1] = (i + 1) / 2
      end
    end
  end
end
return all
