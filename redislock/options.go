package redislock

import (
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/redisconn"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Timeout is how long the server may take for one answer, at most the TTL of a session; default
	// 3 s. A request without an answer leaves its outcome open: the core then releases the claim
	// until that is certain.
	Timeout time.Duration

	// Strict has New fail where the server's configuration can lose locks or counters, instead of
	// logging it.
	Strict bool

	// Functions calls the functions of [Library], which an administrator has loaded, instead of
	// sending scripts.
	Functions bool

	// Shared says that programs which poll for the key use the same names, so that a line of ours
	// leaves them a gap at every 32nd handoff and once a second. Otherwise gaps are left for a
	// minute after such a program was seen holding.
	Shared bool

	// KeepCounters is how long the counter of tokens of a name stays after its last claim;
	// default 7 days, an hour at least, less than 0 for ever. A name that comes back later begins
	// at the server's time, so tokens go on growing unless the server's clock was set back by more
	// than that meanwhile.
	KeepCounters time.Duration

	Logger *slog.Logger // default slog.Default()
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	if options.Timeout <= 0 {
		options.Timeout = redisconn.DefaultTimeout
	}
	if options.KeepCounters == 0 {
		options.KeepCounters = 7 * 24 * time.Hour
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	return options
}
