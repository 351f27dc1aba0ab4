package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

var errClosed = fmt.Errorf("zklock: %w: the driver is closed", driver.ErrNotSent)

// ensemble is the servers: how they are reached, and what is made there. It has no session.
type ensemble struct {
	addrs   []string
	options Options
	base    string        // the path of the locks, "" for the root
	longest time.Duration // of a session, as the servers say
	acl     zk.ACL        // of what is made
	parents zk.Mode       // of a lock's node

	ctx    context.Context //nolint:containedctx // of what goes on in the background; ends with Close
	cancel context.CancelFunc
}

func newEnsemble(addrs []string, o *Options) (*ensemble, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &ensemble{addrs: slices.Clone(addrs), options: options, base: options.Path, parents: zk.Container}
	if options.ACL == CreatorsOnly || options.ACL == "" && options.User != "" {
		e.acl = zk.Creators
	}
	if options.Layout == Kazoo {
		e.parents = zk.Persistent // kazoo makes them once
	}
	for i, addr := range e.addrs {
		if addr == "" {
			return nil, fmt.Errorf("zklock: an address of a server is empty: want HOST or HOST:PORT: %w", driver.ErrRefused)
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			e.addrs[i] = net.JoinHostPort(addr, "2181")
		}
	}
	return e, nil
}

// probe opens a session and ends it, to see that the path is there and how long a session may be.
func (e *ensemble) probe(ctx context.Context) error {
	ctx, cancel := e.within(ctx)
	defer cancel()
	c, err := zk.Dial(ctx, e.connection(24*time.Hour))
	if err != nil {
		return err
	}
	e.longest = c.Timeout()
	root := zk.Get(e.root(), false)
	err = c.Do(ctx, root)
	if err == nil {
		if err = root.Err; root.Code == zk.NoNode {
			err = e.missing()
		} else if err != nil {
			err = fmt.Errorf("look at %s: %w", e.root(), err)
		}
	} else if ctx.Err() != nil {
		err = fmt.Errorf("%w: a server has opened a session, and answers nothing since: %w", driver.ErrNotSent, err)
	} else if errors.Is(err, zk.ErrUnanswered) || errors.Is(err, driver.ErrSessionLost) {
		// The request only reads.
		err = fmt.Errorf("%w: a server has opened a session and ended it: %w", driver.ErrNotSent, err)
	}
	return cmp.Or(err, c.Close(ctx))
}

// within returns the context of a request, which ends when the servers have taken too long. The
// cause is then no end of the caller's own time, and does not match it.
func (e *ensemble) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.options.Timeout, fmt.Errorf("no answer for %v", e.options.Timeout))
}

// connection returns what a client is made of.
func (e *ensemble) connection(timeout time.Duration) zk.Options {
	o := e.options
	return zk.Options{
		Addrs: e.addrs, Timeout: timeout, Dial: o.Dial, TLS: o.TLS, Login: zk.Login{User: o.User, Password: o.Password, SASL: o.SASL},
	}
}

// root is a node that is there.
func (e *ensemble) root() string { return cmp.Or(e.base, "/") }

// dir is the node of a lock.
func (e *ensemble) dir(name string) string { return e.base + "/" + nodeOf(name, e.base == "") }

func (e *ensemble) missing() error {
	return fmt.Errorf("%w: the node %s does not exist: make it, as by zkCli.sh create %[2]s, or name another path", driver.ErrRefused, e.base)
}

// minTTL is the shortest TTL. Servers mostly give more: two of their ticks.
const minTTL = time.Second

// maxTTL is two thirds of the longest session: see session.Valid.
func (e *ensemble) maxTTL() time.Duration { return (e.longest * 2 / 3).Truncate(time.Millisecond) }

// timeout returns how long the session of a TTL is, at least: see session.Valid.
func (e *ensemble) timeout(ttl time.Duration) time.Duration {
	return min(max(ttl, minTTL), e.maxTTL()) * 3 / 2
}

// wants says what the numbers of a claim should be, or nothing where they are that.
func (e *ensemble) wants(c driver.Claim) string {
	switch {
	case c.Kind == driver.Permit && e.options.Layout == Kazoo:
		return "a lock: in kazoo's layout there are no permits"
	case c.Kind.Exclusive() && (c.Weight != driver.All || c.Limit != driver.All):
		return fmt.Sprintf("%d for both", driver.All)
	case c.Kind == driver.Read && (c.Weight != 1 || c.Limit != driver.All):
		return fmt.Sprintf("1 under %d", driver.All)
	case c.Kind < driver.Mutex || c.Kind > driver.Permit:
		return "a mutex, write, read or permit claim"
	case c.Weight < 1 || c.Limit < c.Weight || c.Limit > driver.All:
		return fmt.Sprintf("1 ≤ weight ≤ limit ≤ %d", driver.All)
	case c.Kind == driver.Permit && leaseCount(c)*(len(e.dir(c.Name))+leaseBytes) > maxRequest:
		return fmt.Sprintf("fewer at once or a shorter name, since a server takes requests of up to %d bytes, or a limit above %d, where they are one node", maxRequest, maxLeases)
	}
	return ""
}
