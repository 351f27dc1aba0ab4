package redislock

import (
	_ "embed" // the scripts
	"strings"

	"github.com/interlock-go/interlock/redisconn"
)

// The scripts. Each file begins with what it takes and returns.
var (
	//go:embed take.lua
	takeText string
	//go:embed free.lua
	freeText string
	//go:embed line.lua
	lineText string
	//go:embed hold.lua
	holdText string
	//go:embed share.lua
	shareText string
	//go:embed mark.lua
	markText string
	//go:embed look.lua
	lookText string
	//go:embed standing.lua
	standingText string
	//go:embed prune.lua
	pruneText string
	//go:embed drop.lua
	dropText string

	// A function whose arguments change is called by another name: a library may be of another
	// version than the program.
	takeScript  = redisconn.NewScript("interlock_take2", takeText)
	freeScript  = redisconn.NewScript("interlock_free", freeText)
	lineScript  = redisconn.NewScript("interlock_line2", lineText)
	holdScript  = redisconn.NewScript("interlock_hold", holdText)
	shareScript = redisconn.NewScript("interlock_share", shareText)
	markScript  = redisconn.NewScript("interlock_mark", markText)
	lookScript  = redisconn.NewScript("interlock_look2", lookText)
	dropScript  = redisconn.NewScript("interlock_drop", dropText)

	standingScript = redisconn.NewScript("interlock_standing2", standingText)
	pruneScript    = redisconn.NewScript("interlock_prune", pruneText)
)

// Library returns the scripts as a function library for FUNCTION LOAD, Redis 7 or later. An
// administrator loads it once, and users of locks then need the right to FCALL and none to EVAL;
// see [Options].Functions.
func Library() string {
	var b strings.Builder
	b.WriteString("#!lua name=interlock\n")
	for _, s := range []*redisconn.Script{
		takeScript, freeScript, lineScript, holdScript, shareScript, markScript, lookScript, standingScript, pruneScript, dropScript,
	} {
		b.WriteString("redis.register_function('" + s.Name + "', function(KEYS, ARGV)\n" + s.Text + "\nend)\n")
	}
	return b.String()
}
