package mysqllock

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Technique is how locks are kept: "rows", which is the default; or on connections of our own,
	// "session", by GET_LOCK, or "rowlock", by SELECT … FOR UPDATE.
	Technique string

	// Keys is how technique session makes the key of a name: "interlock", the default; as others
	// do, to share locks with them, "dotnet" or "django_mysql"; or "name": the name is the key.
	Keys string

	// Prefix begins the names of the tables and procedures; default "interlock_". It is made of
	// a-z, 0-9 and _.
	Prefix string

	// MaxWaiting is how many claims may wait at once on a connection each, without polling: of
	// technique rows 8 by default, and the others poll; of a session of the other techniques 32,
	// and the others are refused.
	MaxWaiting int

	// Timeout is how long the server may take for one answer, at most the TTL of a session; default
	// 3 s. A request without an answer leaves its outcome open: the core then releases the claim
	// until that is certain.
	Timeout time.Duration

	Logger *slog.Logger // default slog.Default()
}

var prefix = lazyregexp.New(`^[a-z_][a-z0-9_]{0,29}$`)

func (o *Options) withDefaults() (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	options.Prefix = cmp.Or(options.Prefix, "interlock_")
	options.Timeout = cmp.Or(max(options.Timeout, 0), 3*time.Second)
	options.Logger = cmp.Or(options.Logger, slog.Default())
	most := 8
	if options.Technique != "" && options.Technique != "rows" {
		most = 32
	}
	options.MaxWaiting = cmp.Or(max(options.MaxWaiting, 0), most)
	if _, err := convention(options.Keys); err != nil {
		return options, err
	}
	switch {
	case options.Keys != "" && options.Technique != "session": // else who means to share locks would share none
		return options, fmt.Errorf("mysqllock: keys %q are of technique session: want technique=session, or no keys", options.Keys)
	case !slices.Contains([]string{"", "rows", "session", "rowlock"}, options.Technique):
		return options, fmt.Errorf("mysqllock: unknown technique %q: want rows, session or rowlock", options.Technique)
	case !prefix.MatchString(options.Prefix):
		return options, fmt.Errorf("mysqllock: prefix %q: want at most 30 of a-z, 0-9 and _, and no digit first", options.Prefix)
	}
	return options, nil
}
