package flawed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// sequential is a lock in ZooKeeper: a node with a number for each claim below that of the lock,
// and the first holds. All claims of a process live with one session. Where the connection ends
// before a create is answered, the node may be there. Without the flaw it is looked for, by the
// claim's ID in its name. With the flaw another one is made: the first stays ahead of all others
// for as long as the process lives.
type sequential struct {
	addrs []string
	again bool // the flaw

	mu     sync.Mutex
	client *zk.Client // nil until a claim wants one, and when its session is over
}

// openSequential looks whether the servers are there.
func openSequential(ctx context.Context, hosts string, again bool) (driver.Driver, error) {
	z := &sequential{addrs: strings.Split(hosts, ","), again: again}
	c, err := zk.Dial(ctx, zk.Options{Addrs: z.addrs, Timeout: time.Second})
	if err == nil {
		err = c.Close(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("flawed: %w", err)
	}
	return &store{lock: z, close: z.close, traits: driver.Traits{Expires: true, MinTTL: time.Second, Grain: time.Second}}, nil
}

func (z *sequential) close() {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = z.client.Close(ctx) // or else time ends it
	}
}

// connected is the session for claims of a TTL, which is two thirds of its timeout.
func (z *sequential) connected(ctx context.Context, ttl time.Duration) (_ *zk.Client, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.client == nil {
		z.client, err = zk.Dial(ctx, zk.Options{Addrs: z.addrs, Timeout: ttl * 3 / 2})
	}
	return z.client, err
}

// ended returns nil where an error says that the session of c is over, and drops it, so that the
// next claim begins another one. It returns any other error as it is.
func (z *sequential) ended(c *zk.Client, err error) error {
	if !errors.Is(err, driver.ErrSessionLost) {
		return err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.client == c {
		z.client = nil
	}
	return nil
}

func (*sequential) value(g *grip) string { return g.id }

// dir is the node of a lock.
func dir(g *grip) string { return "/" + url.PathEscape(g.key) }

func (z *sequential) acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	if g.at.path == "" {
		c, err := z.connected(ctx, ttl)
		if err != nil {
			return false, err
		}
		if g.at.client == nil {
			g.at.client = c
		}
		if err := z.enter(ctx, g); err != nil {
			return false, z.lapse(g, err)
		}
	}
	line, err := z.line(ctx, g)
	if err != nil {
		return false, z.lapse(g, err)
	}
	own := path.Base(g.at.path)
	if !slices.Contains(line, own) {
		g.at = place{}
		return false, nil
	}
	return line[0] == own, nil
}

// lapse returns nil where an error says that the claim's session is over, and forgets its place. It
// returns any other error as it is.
func (z *sequential) lapse(g *grip, err error) error {
	if err = z.ended(g.at.client, err); err == nil {
		g.at = place{}
	}
	return err
}

// enter puts the claim into line.
func (z *sequential) enter(ctx context.Context, g *grip) error {
	for {
		if !z.again {
			if err := z.find(ctx, g); err != nil || g.at.path != "" {
				return err
			}
		}
		parent, create := zk.Create(dir(g), nil, zk.Container, zk.Anyone), zk.Create(dir(g)+"/"+g.id+"-", nil, zk.EphemeralSequential, zk.Anyone)
		err := g.at.client.Do(ctx, parent, create)
		switch {
		case errors.Is(err, zk.ErrUnanswered):
			continue
		case err != nil:
			return err
		case create.Code != zk.NoNode: // or else the servers have just removed the parent
			g.at.path = create.Path
			return create.Err
		}
	}
}

// find looks for a node of the claim.
func (z *sequential) find(ctx context.Context, g *grip) error {
	line, err := z.line(ctx, g)
	if at := slices.IndexFunc(line, func(node string) bool { return strings.HasPrefix(node, g.id) }); at >= 0 {
		g.at.path = dir(g) + "/" + line[at]
	}
	return err
}

// line reads the nodes of the line in order. A read that was not answered is repeated.
func (z *sequential) line(ctx context.Context, g *grip) ([]string, error) {
	var names *zk.Call
	for {
		names = zk.Children(dir(g), false)
		err := g.at.client.Do(ctx, zk.Sync(dir(g)), names)
		if err == nil {
			break
		}
		if !errors.Is(err, zk.ErrUnanswered) {
			return nil, err
		}
	}
	if names.Err != nil && names.Code != zk.NoNode {
		return nil, names.Err
	}
	number := func(node string) string { return node[strings.LastIndexByte(node, '-')+1:] }
	slices.SortFunc(names.Children, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	return names.Children, nil
}

func (z *sequential) renew(ctx context.Context, g *grip, _ time.Duration) (bool, error) {
	if g.at.path == "" {
		return false, nil
	}
	line, err := z.line(ctx, g)
	if err != nil {
		err = z.lapse(g, err)
		return false, err
	}
	return len(line) > 0 && line[0] == path.Base(g.at.path), nil
}

func (z *sequential) release(ctx context.Context, g *grip) (bool, error) {
	if g.at.client == nil {
		return false, nil
	}
	if g.at.path == "" && !z.again {
		if err := z.find(ctx, g); err != nil {
			return false, z.lapse(g, err)
		}
	}
	if g.at.path == "" {
		return false, nil
	}
	for again := false; ; again = true {
		out := zk.Delete(g.at.path, -1)
		err := g.at.client.Do(ctx, out)
		switch {
		case errors.Is(err, zk.ErrUnanswered):
			continue
		case err != nil:
			return false, z.lapse(g, err)
		case out.Err != nil && out.Code != zk.NoNode:
			return false, out.Err
		}
		g.at = place{}
		return out.Err == nil || again, nil
	}
}

func (*sequential) valid(ttl, _ time.Duration) time.Duration { return ttl }
