package memcachedlock

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/storeurl"
)

// Layout is which key a name has.
type Layout string

// The layouts. In both of them the item is added where it is missing, and goes by itself.
const (
	// Hashed keeps any name: one that is no key, or too long for one, is shortened and has a hash at its end.
	Hashed Layout = "hashed"

	// Add is the recipe of tooz, Symfony, ShedLock and many that are written by hand: the key is the name behind a prefix, as it is, and
	// what is no key is refused.
	Add Layout = "add"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	Layout Layout // default Hashed

	// Prefix begins every key; default "interlock:", and nothing with Add. tooz has "__TOOZ_LOCK_", ShedLock "shedlock:ENVIRONMENT:".
	Prefix string

	// User and Password of a server that was started with -Y, an authentication file.
	User, Password string

	TLS *tls.Config // of a server that was started with -Z

	// Timeout is how long a server may take for one answer; default and at most 3 s, the shortest TTL.
	Timeout time.Duration

	// Logger is told, when a driver is made, that this store is for efficiency only; default slog.Default().
	Logger *slog.Logger
}

// configure takes in servers and options.
func (d *Driver) configure(servers []string, o *Options) error {
	if o != nil {
		d.options = *o
	}
	d.options.Layout = cmp.Or(d.options.Layout, Hashed)
	d.options.Timeout = cmp.Or(d.options.Timeout, minTTL)
	if d.options.Logger == nil {
		d.options.Logger = slog.Default()
	}
	if d.options.Layout == Hashed {
		d.options.Prefix = cmp.Or(d.options.Prefix, "interlock:")
	}
	var addrs []string
	for _, s := range servers {
		addr, err := storeurl.Host(s, "11211")
		if err != nil {
			return fmt.Errorf("%w: %w", driver.ErrRefused, err)
		}
		addrs = append(addrs, addr)
	}
	slices.Sort(addrs)
	switch addrs = slices.Compact(addrs); {
	case len(addrs) == 0 || len(addrs) < len(servers):
		return fmt.Errorf("%w: %d servers, of which %d differ: want each once, and all that there are", driver.ErrRefused, len(servers), len(addrs))
	case d.options.Layout != Hashed && d.options.Layout != Add:
		return fmt.Errorf("%w: layout %q: want %s or %s", driver.ErrRefused, d.options.Layout, Hashed, Add)
	case d.options.Layout == Add && len(addrs) > 1:
		return fmt.Errorf("%w: layout add with %d servers: other programs choose the server of a name in another way, so want one", driver.ErrRefused, len(addrs))
	case d.options.Timeout < 0 || d.options.Timeout > minTTL:
		return fmt.Errorf("%w: timeout %v: want at most %v, the shortest TTL", driver.ErrRefused, d.options.Timeout, minTTL)
	case d.options.Prefix != "" && memcache.CheckKey(d.options.Prefix) != nil || len(d.options.Prefix) > maxPrefix:
		return fmt.Errorf("%w: prefix %q: want at most %d bytes without blanks and control characters", driver.ErrRefused, d.options.Prefix, maxPrefix)
	case strings.ContainsAny(d.options.User+d.options.Password, " \r\n") || (d.options.User == "") != (d.options.Password == ""):
		return fmt.Errorf("%w: user and password: want both or none, without blanks", driver.ErrRefused)
	}
	for _, addr := range addrs {
		d.servers = append(d.servers, memcache.New(memcache.Server{Addr: addr, User: d.options.User, Password: d.options.Password, TLS: d.options.TLS, Timeout: d.options.Timeout}))
	}
	return nil
}
