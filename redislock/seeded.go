package redislock

import (
	"github.com/interlock-go/interlock/internal/mutant"
)

var takeBugs = []mutant.Swap{
	{On: mutant.On("redis-time"), Texts: []string{"if c < us then", "if c < 0 then"}},
	{On: mutant.On("R1"), Texts: []string{"if c < us then", "if c == 64 then"}},
	{On: mutant.On("R4"), Texts: []string{"if c < us then", "if true then"}},
	{On: mutant.On("R13"), Texts: []string{"'PX', ARGV[2 * i]", "'PXAT', ARGV[2 * i]"}},
	{On: mutant.On("redis-take-parity"), Texts: []string{"if c % 2 == 1 then", "if c == 1 then"}},
}

var holdBugs = []mutant.Swap{
	{On: mutant.On("R6"), Texts: []string{"missing[#missing + 1] = i * 2\n", "redis.call('SET', KEYS[i], ARGV[i + 1] .. '-', 'PX', ARGV[1])\n"}},
}

var lineBugs = []mutant.Swap{
	{On: mutant.On("redis-draw"), Texts: []string{"odd = c % 2\n  if c < us then", "odd = c % 2\n  if c < 0 then", "if c < us then", "if c < 0 then"}},
	{On: mutant.On("redis-requeue-fastpath"), Texts: []string{"if enter == '' and v == 'il1:'", "if v == 'il1:'"}},
	{On: mutant.On("redis-mark"), Texts: []string{
		"promote(who, info, time, more, drawn)", "promote(who, info, time, false, drawn)",
		"local want = n > 0 and '+' or '-'", "local want = n == 1 and '+' or mark",
	}},
	{On: mutant.On("redis-parity"), Texts: []string{"if n > 0 and odd == 0 then", "if n == 1 and odd == 0 and vacated then"}},
	{On: mutant.On("redis-dead"), Texts: []string{
		"return redis.call('PUBLISH', channel, message) > 0", "return redis.call('PUBLISH', channel, message) >= 0",
	}},
	{On: mutant.On("redis-late-release"), Texts: []string{"if id == leave then", "if id then"}},
	{On: mutant.On("redis-A2"), Texts: []string{"== 'il1:' .. leave .. '-' then", "~= '' then"}},
	{On: mutant.On("R4b"), Texts: []string{"if math.max(seen, gap, open) > now + 100 then", "if false then"}},
	{On: mutant.On("redis-foreign"), Texts: []string{"#v > 26 and string.sub(v, 1, 4) == 'il1:' and", "#v > 26 and"}},
	{On: mutant.On("redis-settle-twice"), Texts: []string{"v, cover, vacated = COVER, true, false", "v, vacated = COVER, false"}},
	{On: mutant.On("redis-endless"), Texts: []string{
		"local n = redis.call('RPUSH', W, enter)", "redis.call('LREM', W, '1', who)\n        local n = 1 + redis.call('RPUSH', W, enter)",
	}},
	{On: mutant.On("redis-gap"), Texts: []string{"local yes = now - gap >= 1000 or known and handoffs >= 31", "local yes = false"}},
}
