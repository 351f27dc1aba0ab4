package redissonlock

import (
	"github.com/interlock-go/interlock/internal/mutant"
)

var takeBugs = []mutant.Swap{
	{On: mutant.On("redisson-kinds"), Texts: []string{"elseif holders > 0 and (kind == 'm') == (mode ~= false) then", "elseif false then"}},
	{On: mutant.On("redisson-fair"), Texts: []string{"if redis.call('ZCOUNT', places", "if false and redis.call('ZCOUNT', places"}},
	{On: mutant.On("redisson-own-time"), Texts: []string{"redis.call('SET', own, 1, 'PX', lease)", ""}},
	{On: mutant.On("redisson-stride"), Texts: []string{"token = redis.call('INCRBY', counter, 32) - 31\nend\nif kind", "token = redis.call('INCR', counter)\nend\nif kind"}},
	{On: mutant.On("redisson-forever"), Texts: []string{"redis.call('PEXPIRE', name, math.max(lease, mode and redis.call('PTTL', name) or 0))", ""}},
}

var leaveBugs = []mutant.Swap{
	{On: mutant.On("redisson-tell"), Texts: []string{"if kind == 'm' then\n  redis.call(publish, channel, '0')", "if kind == 'm' then"}},
	{On: mutant.On("redisson-tell-all"), Texts: []string{"redis.call(publish, channel, '1')\n  else", "redis.call(publish, channel, '0')\n  else"}},
	{On: mutant.On("redisson-theirs"), Texts: []string{"if not count then\n  return 0", "if not count then\n  redis.call('DEL', name)\n  return 0"}},
	{On: mutant.On("redisson-last-reader"), Texts: []string{"if longest > 0 then", "if false then"}},
}

var holdBugs = []mutant.Swap{
	{On: mutant.On("redisson-shorten"), Texts: []string{"math.max(lease, redis.call('PTTL', name)))", "lease)"}},
	{On: mutant.On("redisson-dead-reader"), Texts: []string{"redis.call('PEXPIRE', own, lease) == 0", "redis.call('PEXPIRE', own, lease) == 2"}},
	{On: mutant.On("redisson-mark"), Texts: []string{"if note and string.sub(note, 1, 1) == 'b' then", "if false then"}},
}
