package flawed

import (
	"context"
	"net"
	"sync"
	"time"
)

// watchdog extends each lock by a goroutine of its own, which does not end when the lock is
// released. (Here the session extends, too, and the goroutine does nothing.)
type watchdog struct{ honest }

func (w watchdog) acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	held, err := w.honest.acquire(ctx, g, ttl)
	if held {
		go func() {
			for range time.Tick(ttl) {
				continue
			}
		}()
	}
	return held, err
}

// unclosed has a connection for each lock, on which a notice might come, and does not close it.
type unclosed struct {
	honest
	addr string
}

// open are the connections that nobody closes. What nothing refers to the garbage collector would
// close.
var open struct {
	sync.Mutex
	all []net.Conn
}

func (u unclosed) acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error) {
	held, err := u.honest.acquire(ctx, g, ttl)
	if held {
		var d net.Dialer
		if c, err := d.DialContext(ctx, "tcp", u.addr); err == nil {
			open.Lock()
			open.all = append(open.all, c)
			open.Unlock()
		}
	}
	return held, err
}

// litter leaves a key behind at each release, for a client that might wait for it.
type litter struct{ honest }

func (l litter) release(ctx context.Context, g *grip) (bool, error) {
	held, err := l.honest.release(ctx, g)
	if held {
		err = l.redis.Do(ctx, l.redis.B().Lpush().Key(g.key+":"+g.id).Element("free").Build()).Error()
	}
	return held, err
}
