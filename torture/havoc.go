//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// havoc does things to servers, by seed, one after the other. Each is over, and the servers are whole, before the next.
type havoc struct {
	servers *servers
	faults  []string // what may be done
	rand    *rand.Rand
	ttl     time.Duration
	once    bool   // at once, and never again
	muted   *muted // what hears nothing at the moment
	history []fault
	done    map[string]int
	whole   []instant // when all servers were there again, of masters
	stuck   []violation
	end     instant
	use     func(context.Context) // the locks, as a program that wants a name
}

func (h *havoc) note(format string, args ...any) {
	h.history = append(h.history, fault{at: now(), slot: anyServer, what: fmt.Sprintf(format, args...)})
}

func (h *havoc) some(low, high float64) time.Duration {
	return time.Duration((low + h.rand.Float64()*(high-low)) * float64(h.ttl))
}

// wreak goes on until end. Between two faults there is time enough for everybody to get in again.
func (h *havoc) wreak(ctx context.Context, end instant) error {
	h.end = end
	if len(h.faults) == 0 {
		return nil
	}
	if h.once {
		return h.strike(ctx, h.faults[0])
	}
	for turn := h.rand.IntN(len(h.faults)); ; turn++ {
		pause(min(h.some(2, 6), max(end.sub(now()), 0)), ctx.Done())
		if now() >= end {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		kind := h.faults[turn%len(h.faults)]
		if h.servers.masters != nil && waits(kind) && end.sub(now()) < waiting {
			continue
		}
		if err := h.strike(ctx, kind); err != nil {
			return err
		}
	}
}

// strike does one thing, and returns when everything is whole again.
func (h *havoc) strike(ctx context.Context, kind string) error {
	ctx, cancel := context.WithTimeout(ctx, comeUp)
	defer cancel()
	h.done[kind]++
	switch err := h.harm(ctx, kind); {
	case errors.Is(err, errVoteless): // which is what the locks do not do
		h.stuck = append(h.stuck, violation{at: now(), what: err.Error()})
		return nil
	case err != nil:
		return fmt.Errorf("%s of a server: %w", kind, err)
	}
	if h.servers.masters != nil {
		h.whole = append(h.whole, now())
	}
	return nil
}

func (h *havoc) harm(ctx context.Context, kind string) error {
	switch {
	case h.servers.masters != nil:
		return h.harmMasters(ctx, kind)
	case h.servers.postgres != nil:
		return h.harmPostgres(ctx, kind)
	case h.servers.etcd != nil:
		return h.harmEtcd(ctx, kind)
	case h.servers.mariadb != nil:
		return h.harmMariaDB(ctx, kind)
	case h.servers.zookeeper != nil:
		return h.harmZooKeeper(ctx, kind)
	case h.servers.memcached != nil:
		return h.harmMemcached(ctx, kind)
	}
	switch kind {
	case FaultPause:
		if h.servers.sentinels != nil || h.servers.cluster != nil {
			return h.split(ctx)
		}
		return h.pause(ctx, h.servers.redis)
	case FaultFailover:
		return h.failover(ctx, false)
	case FaultStale:
		return h.failover(ctx, true)
	case FaultRestart:
		return h.restart(ctx, h.servers.redis)
	case FaultEvict:
		defer h.note("drops every key that has a TTL")
		return squeeze(h.servers.redis)
	}
	return fmt.Errorf("torture: no fault %q", kind)
}

// pause stops a server for half to three times the TTL.
func (h *havoc) pause(ctx context.Context, s *servertest.Server) error {
	h.note("is stopped")
	if err := s.Pause(); err != nil {
		return err
	}
	pause(h.some(0.5, 3), ctx.Done())
	defer h.note("is continued")
	return s.Resume()
}

// restart lets a server die, or end in an orderly way, and starts it again up to twice the TTL later.
func (h *havoc) restart(ctx context.Context, s *servertest.Server) error {
	end, how := s.Kill, "is killed"
	if h.rand.IntN(2) == 0 {
		end, how = s.Stop, "ends"
	}
	h.note("%s", how)
	if err := end(); err != nil {
		return err
	}
	pause(h.some(0, 2), ctx.Done())
	defer h.note("is there again, with all its data")
	return s.Restart(ctx)
}

// takeAll takes all connections that a database has left, by dial, which returns what ends one, and keeps them for half to three times the TTL.
func (h *havoc) takeAll(ctx context.Context, dial func() (end func() error, err error)) error {
	var mu sync.Mutex
	var all []func() error
	var dialling sync.WaitGroup
	for range 8 {
		dialling.Go(func() {
			for ctx.Err() == nil {
				end, err := dial()
				if err != nil {
					return
				}
				mu.Lock()
				all = append(all, end)
				mu.Unlock()
			}
		})
	}
	dialling.Wait()
	h.note("has no connection left: others have taken %d", len(all))
	pause(h.some(0.5, 3), ctx.Done())
	var errs []error
	for _, end := range all {
		errs = append(errs, end())
	}
	h.note("has connections again")
	return errors.Join(errs...)
}
