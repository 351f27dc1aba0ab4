package memcachedlock

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
)

// Layout is how the key of a lock is made of its name.
type Layout string

// The layouts. In both of them the item is added where it is missing, and goes by itself.
const (
	// Hashed keeps any name: one that is no key, or too long for one, is shortened and has a hash
	// at its end.
	Hashed Layout = "hashed"

	// Add is the recipe of tooz, Symfony, ShedLock and many that are written by hand: the key is
	// the name behind a prefix, as it is, and what is no key is refused.
	Add Layout = "add"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	Layout Layout // default Hashed

	// Prefix begins every key; default "interlock:", and nothing with Add. tooz has "__TOOZ_LOCK_",
	// ShedLock "shedlock:ENVIRONMENT:".
	Prefix string

	// User and Password of a server that was started with -Y, an authentication file.
	User, Password string

	TLS *tls.Config // of a server that was started with -Z

	// Timeout is how long a server may take for one answer; default and at most 3 s, the shortest
	// TTL.
	Timeout time.Duration

	// Logger is told, when a driver is made, that this store is for efficiency only; default
	// slog.Default().
	Logger *slog.Logger
}

// The TTLs of a session: a server takes a time of more than 30 days for a date.
const (
	minTTL = 3 * time.Second
	maxTTL = 29 * 24 * time.Hour
)

// withDefaults returns the options of a driver over so many servers, or why there is none with
// them.
func (o *Options) withDefaults(servers int) (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	options.Layout = cmp.Or(options.Layout, Hashed)
	options.Timeout = cmp.Or(options.Timeout, minTTL)
	options.Logger = cmp.Or(options.Logger, slog.Default())
	if options.Layout == Hashed {
		options.Prefix = cmp.Or(options.Prefix, "interlock:")
	}
	var err error
	switch {
	case options.Layout != Hashed && options.Layout != Add:
		err = fmt.Errorf("layout %q: want %s or %s", options.Layout, Hashed, Add)
	case options.Layout == Add && servers > 1:
		err = fmt.Errorf("layout add with %d servers: other programs choose the server of a name in another way, so want one", servers)
	case options.Timeout < 0 || options.Timeout > minTTL:
		err = fmt.Errorf("timeout %v: want at most %v, the shortest TTL", options.Timeout, minTTL)
	case options.Prefix != "" && memcache.CheckKey(options.Prefix) != nil || len(options.Prefix) > maxPrefix:
		err = fmt.Errorf("prefix %q: want at most %d bytes without blanks and control characters", options.Prefix, maxPrefix)
	case strings.ContainsAny(options.User+options.Password, " \r\n") || (options.User == "") != (options.Password == ""):
		err = errors.New("user and password: want both or none, without blanks")
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", driver.ErrRefused, err)
	}
	return options, err
}
