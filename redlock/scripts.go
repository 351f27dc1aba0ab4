package redlock

import (
	_ "embed" // the scripts

	"github.com/interlock-go/interlock/redisconn"
)

// The scripts. Each file begins with what it takes and returns.
var (
	//go:embed take.lua
	takeText string
	//go:embed line.lua
	lineText string
	//go:embed raise.lua
	raiseText string
	//go:embed hold.lua
	holdText string
	//go:embed mark.lua
	markText string
	//go:embed look.lua
	lookText string
	//go:embed evict.lua
	evictText string
	//go:embed occupied.lua
	occupiedText string
	//go:embed prune.lua
	pruneText string

	takeScript  = redisconn.NewScript("interlock_quorum_take", takeText)
	lineScript  = redisconn.NewScript("interlock_quorum_line", lineText)
	raiseScript = redisconn.NewScript("interlock_quorum_raise", raiseText)
	holdScript  = redisconn.NewScript("interlock_quorum_hold", holdText)
	markScript  = redisconn.NewScript("interlock_quorum_mark", markText)
	lookScript  = redisconn.NewScript("interlock_quorum_look", lookText)
	evictScript = redisconn.NewScript("interlock_quorum_evict", evictText)

	occupiedScript = redisconn.NewScript("interlock_quorum_occupied", occupiedText)
	pruneScript    = redisconn.NewScript("interlock_quorum_prune", pruneText)
)
