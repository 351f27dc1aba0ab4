package mysqllock

import (
	"cmp"
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Technique is how locks are kept: "rows", which is the default.
	Technique string

	// Prefix begins the names of the tables and procedures; default "interlock_". It is made of a-z, 0-9 and _.
	Prefix string

	// Timeout is how long the server may take for one answer, at most the TTL of a session; default 3 s. A request without an
	// answer leaves its outcome open: the core then releases the claim until that is certain.
	Timeout time.Duration

	Logger *slog.Logger // default slog.Default()
}

var prefix = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,29}$`)

func (o *Options) withDefaults() (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	options.Prefix = cmp.Or(options.Prefix, "interlock_")
	options.Timeout = cmp.Or(max(options.Timeout, 0), 3*time.Second)
	options.Logger = cmp.Or(options.Logger, slog.Default())
	switch {
	case options.Technique != "" && options.Technique != "rows":
		return options, fmt.Errorf("mysqllock: unknown technique %q: want rows", options.Technique)
	case !prefix.MatchString(options.Prefix):
		return options, fmt.Errorf("mysqllock: prefix %q: want at most 30 of a-z, 0-9 and _, and no digit first", options.Prefix)
	}
	return options, nil
}
