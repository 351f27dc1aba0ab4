package redislock

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
				panic("redislock: a bug cannot be seeded: the script does not have " + b.swaps[i])
			}
			script = strings.Replace(script, b.swaps[i], b.swaps[i+1], 1)
		}
	}
	return script
}

var takeBugs = []luaBug{
	{mutant.On("redis-floor"), []string{"floor == 0 or c < floor", "c == 0"}},
	{mutant.On("R4"), []string{"if floor == 0 or c < floor then", "if true then", "if c < us then", "if true then"}},
	{mutant.On("R13"), []string{"'PX', ARGV[2 * i + 1]", "'PXAT', ARGV[2 * i + 1]"}},
	{mutant.On("redis-take-parity"), []string{"if c % 2 == 1 then", "if c == 1 then"}},
}

var holdBugs = []luaBug{
	{mutant.On("R6"), []string{"missing[#missing + 1] = i * 2\n", "redis.call('SET', KEYS[i], ARGV[i + 1] .. '-', 'PX', ARGV[1])\n"}},
}

var lineBugs = []luaBug{
	{mutant.On("redis-draw"), []string{"local t = clock()\n  if c < t then", "local t = 0\n  if c < t then"}},
	{mutant.On("redis-requeue-fastpath"), []string{"if enter == '' and redis.pcall('GETRANGE'", "if redis.pcall('GETRANGE'"}},
	{mutant.On("redis-mark"), []string{
		"promote(who, c.info, c.ttl, more, drawn)", "promote(who, c.info, c.ttl, false, drawn)",
		"local want = n > 0 and '+' or '-'", "local want = n == 1 and '+' or mark",
	}},
	{mutant.On("redis-parity"), []string{"if n > 0 and odd == 0 then", "if n == 1 and odd == 0 and vacated then"}},
	{mutant.On("redis-dead"), []string{
		"return redis.call('PUBLISH', channel, message) > 0", "return redis.call('PUBLISH', channel, message) >= 0",
	}},
	{mutant.On("redis-late-release"), []string{"if id == leave then", "if id then"}},
	{mutant.On("redis-A2"), []string{"== 'il1:' .. leave .. '-' then", "~= '' then"}},
	{mutant.On("R4b"), []string{"if math.max(seen, gap, open) > ms() + 100 then", "if false then"}},
	{mutant.On("redis-foreign"), []string{"#v > 26 and string.sub(v, 1, 4) == 'il1:' and", "#v > 26 and"}},
	{mutant.On("redis-settle-twice"), []string{"v, cover, vacated = COVER, true, false", "v, vacated = COVER, false"}},
	{mutant.On("redis-gap"), []string{"local now = ms() - gap >= 1000 or known and handoffs >= 31", "local now = false"}},
}
