//go:build linux || darwin

package servers

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// memcached is one memcached.
type memcached struct {
	usual
	server *servertest.Server
}

// startMemcached starts one that logs nothing of what it is asked.
func startMemcached(ctx context.Context) (kind, error) {
	s, err := servertest.StartMemcached(ctx, servertest.Options{})
	if err != nil {
		return nil, err
	}
	m := &memcached{server: s}
	if err := m.tell("verbosity 0"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return m, nil
}

// tell sends a command that is answered by OK.
func (m *memcached) tell(command string) error {
	_, err := exchange(m.server, command+"\r\n", "OK")
	return err
}

func (m *memcached) url() string                 { return m.server.URL() }
func (m *memcached) nodes() []*servertest.Server { return []*servertest.Server{m.server} }
func (m *memcached) proxied() []string           { return addrs(m.nodes()) }
func (m *memcached) tells() bool                 { return false }
func (m *memcached) close() error                { return m.server.Close() }

// spare is that of an item, whose time is whole seconds.
func (m *memcached) spare(time.Duration) time.Duration { return 2 * time.Second }

func (m *memcached) harm(ctx context.Context, i *Injector, fault string) error {
	switch fault {
	case FaultPause:
		return i.pause(ctx, m.server)
	case FaultEvict:
		defer i.note("drops every key")
		return m.tell("flush_all")
	}
	return fmt.Errorf("torture: no fault %s of a memcached", fault)
}

var itemUntil = regexp.MustCompile(`\bexp=(-?\d+)\b`)

// entries leaves out items whose time is over.
func (m *memcached) entries(context.Context) (n int, err error) {
	text, err := exchange(m.server, "lru_crawler metadump all\r\n", "END")
	if err != nil {
		return 0, err
	}
	for _, f := range itemUntil.FindAllStringSubmatch(text, -1) {
		if at, err := strconv.ParseInt(f[1], 10, 64); err == nil && (at < 0 || time.Unix(at, 0).After(time.Now())) {
			n++
		}
	}
	return n, nil
}
