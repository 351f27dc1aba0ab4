package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redlock"
)

// masters is how many servers the contenders on a quorum have.
const masters = 5

// redlocked is Interlock with its default options on several masters.
type redlocked struct {
	interlocked
	driver *redlock.Driver
}

func openRedlock(ctx context.Context, p place) (locker, error) { return openMasters(ctx, p, nil) }

func openRedlockStrict(ctx context.Context, p place) (locker, error) {
	return openMasters(ctx, p, strictly())
}

func (p place) redlockURL() string { return "redlock://" + strings.Join(p.Redis, ",") }

// openRedlockAhead and openRedlockBehind have the first process's clock an hour
// ahead of the others', or behind them, as far as tickets go.
func openRedlockAhead(ctx context.Context, p place) (locker, error) {
	return openSkewed(ctx, p, p.Process == 1)
}

func openRedlockBehind(ctx context.Context, p place) (locker, error) {
	return openSkewed(ctx, p, p.Process != 1)
}

// openSkewed opens masters for a process whose clock is an hour ahead: it has
// met a ticket that is, and takes none from then on that is less so.
func openSkewed(ctx context.Context, p place, ahead bool) (locker, error) {
	l, err := openMasters(ctx, p, nil)
	if err != nil || !ahead {
		return l, err
	}
	const name = "bench/ahead"
	holder := fmt.Sprintf("ilq1:%s-%016d nobody {}", driver.NewID(), time.Now().Add(time.Hour).UnixMicro())
	for _, addr := range p.Redis {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		err = client.Do(ctx, client.B().Arbitrary("SET").Keys(name).Args(holder, "PX", "60000").Build()).Error()
		client.Close()
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	if _, err := l.(*redlocked).client.Mutex(name).TryLock(ctx); !errors.Is(err, interlock.ErrHeld) {
		return nil, errors.Join(fmt.Errorf("bench: a name that a claim with a late ticket has: %w", err), l.close())
	}
	return l, nil
}

// openMasters keeps hold of the driver, which counts its raises.
func openMasters(ctx context.Context, p place, options func() []interlock.LockOption) (locker, error) {
	d, err := driver.OpenURL(ctx, p.redlockURL())
	if err != nil {
		return nil, err
	}
	client, err := interlock.New(d, &interlock.Options{TTL: p.TTL})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &redlocked{interlocked{client, options}, d.(*redlock.Driver)}, nil
}

func (r *redlocked) mutex(name string) mutex {
	return tokenedMutex{r.interlocked.mutex(name).(interlockedMutex)}
}

func (r *redlocked) grants() (all, raised uint64) {
	s := r.driver.Stats()
	return s.Grants, s.Raises
}

func (r *redlocked) close() error {
	return errors.Join(r.client.Close(), r.driver.Close(context.Background()))
}

// tokenedMutex is an interlockedMutex whose tokens are checked, and whose
// releases go on behind the back of a holder who cannot wait for them.
type tokenedMutex struct{ interlockedMutex }

func (m tokenedMutex) lockToken(ctx context.Context) (uint64, func() error, error) {
	lease, err := m.Lock(ctx)
	if err != nil {
		return 0, nil, err
	}
	return lease.Fence(), func() error {
		err := lease.Release()
		if errors.Is(err, interlock.ErrUncertain) {
			return nil // too few masters answered in time: they are stopped, or the machine is busy
		}
		return err
	}, nil
}
