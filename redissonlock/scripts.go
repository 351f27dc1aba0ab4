package redissonlock

import (
	_ "embed" // the scripts

	"github.com/interlock-go/interlock/redisconn"
)

// The scripts. Each file begins with what it takes and returns.
var (
	//go:embed take.lua
	takeText string
	//go:embed leave.lua
	leaveText string
	//go:embed hold.lua
	holdText string
	//go:embed mark.lua
	markText string
	//go:embed look.lua
	lookText string

	takeScript  = redisconn.NewScript("interlock_redisson_take", takeText)
	leaveScript = redisconn.NewScript("interlock_redisson_leave", leaveText)
	holdScript  = redisconn.NewScript("interlock_redisson_hold", holdText)
	markScript  = redisconn.NewScript("interlock_redisson_mark", markText)
	lookScript  = redisconn.NewScript("interlock_redisson_look", lookText)
)
