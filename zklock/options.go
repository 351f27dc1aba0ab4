package zklock

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Path is the node under which the locks are, as /locks: Curator's namespace. It has to be there. Default: the root, so that the
	// lock "orders" is the node /orders.
	Path string

	// Timeout is how long the servers may take for one answer, at most the time of a session; default 3 s. A request without an
	// answer leaves its outcome open: the core then releases the claim until that is certain.
	Timeout time.Duration

	// SemaphoreMutex has mutexes written as Curator's InterProcessSemaphoreMutex, a semaphore of one. Such a mutex shares no name with
	// read and write claims.
	SemaphoreMutex bool

	// Dial connects to a server; default by TCP. A TLS connection is made here.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

const defaultTimeout = 3 * time.Second

func (o *Options) withDefaults() (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	options.Timeout = cmp.Or(max(options.Timeout, 0), defaultTimeout)
	options.Path = strings.TrimSuffix(options.Path, "/")
	if p := options.Path; p != "" && (p[0] != '/' || path.Clean(p) != p || p == "/zookeeper" || strings.HasPrefix(p, "/zookeeper/")) {
		return options, fmt.Errorf("zklock: path %q: want one as /locks, without . and .. and empty parts, and not below /zookeeper: %w", p, driver.ErrRefused)
	}
	for _, r := range options.Path {
		if r != '/' && r != '%' && !plain(r) {
			return options, fmt.Errorf("zklock: path %q has the character %U, which a node's name cannot have: %w", options.Path, r, driver.ErrRefused)
		}
	}
	return options, nil
}
