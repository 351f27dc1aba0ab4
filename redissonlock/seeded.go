package redissonlock

import (
	"strings"

	"github.com/interlock-go/interlock/internal/mutant"
)

// luaBug is a bug that can be seeded into a script, for the test that must find it.
type luaBug struct {
	on    bool
	swaps []string // text of the script, and what stands there instead; and so on
}

// seeded returns the script with the bugs that are on.
func seeded(script string, bugs []luaBug) string {
	for _, b := range bugs {
		for i := 0; b.on && i < len(b.swaps); i += 2 {
			if !strings.Contains(script, b.swaps[i]) {
				panic("redissonlock: a bug cannot be seeded: the script does not have " + b.swaps[i])
			}
			script = strings.Replace(script, b.swaps[i], b.swaps[i+1], 1)
		}
	}
	return script
}

var takeBugs = []luaBug{
	{mutant.On("redisson-kinds"), []string{"elseif holders > 0 and (kind == 'm') == (mode ~= false) then", "elseif false then"}},
	{mutant.On("redisson-fair"), []string{"if redis.call('ZCOUNT', places", "if false and redis.call('ZCOUNT', places"}},
	{mutant.On("redisson-own-time"), []string{"redis.call('SET', own, 1, 'PX', lease)", ""}},
	{mutant.On("redisson-stride"), []string{"token = redis.call('INCRBY', counter, 32) - 31\nend\nif kind", "token = redis.call('INCR', counter)\nend\nif kind"}},
	{mutant.On("redisson-forever"), []string{"redis.call('PEXPIRE', name, math.max(lease, mode and redis.call('PTTL', name) or 0))", ""}},
}

var leaveBugs = []luaBug{
	{mutant.On("redisson-tell"), []string{"if kind == 'm' then\n  redis.call(publish, channel, '0')", "if kind == 'm' then"}},
	{mutant.On("redisson-tell-all"), []string{"redis.call(publish, channel, '1')\n  else", "redis.call(publish, channel, '0')\n  else"}},
	{mutant.On("redisson-theirs"), []string{"if not count then\n  return 0", "if not count then\n  redis.call('DEL', name)\n  return 0"}},
	{mutant.On("redisson-last-reader"), []string{"if longest > 0 then", "if false then"}},
}

var holdBugs = []luaBug{
	{mutant.On("redisson-shorten"), []string{"math.max(lease, redis.call('PTTL', name)))", "lease)"}},
	{mutant.On("redisson-dead-reader"), []string{"redis.call('PEXPIRE', own, lease) == 0", "redis.call('PEXPIRE', own, lease) == 2"}},
	{mutant.On("redisson-mark"), []string{"if note and string.sub(note, 1, 1) == 'b' then", "if false then"}},
}
