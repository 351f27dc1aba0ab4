package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislocks is rueidislock as its README sets it up for one server of
// Redis 7: one key, and no notices of its own writes, which it would answer
// by extending at once. It extends each lock by a goroutine and a script.
type rueidislocks struct {
	locker rueidislock.Locker
	// nap is how long a waiter waits for a notice before it asks anew. The
	// library misses some, and its waiter would sleep for ever.
	nap time.Duration
}

func openRueidislock(_ context.Context, p place) (locker, error) {
	o := rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: p.Redis},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: p.TTL,
	}
	nap := time.Second
	if p.TTL > 0 {
		o.ExtendInterval = renewalPeriod(p.TTL)
		nap = 3 * p.TTL // where it is the notice of an expiry that counts
	}
	l, err := rueidislock.NewLocker(o)
	return rueidislocks{l, nap}, err
}

// rueidislockKey is where it keeps its lock of that name.
func rueidislockKey(name string) any { return "rueidislock:0:" + name }

func (r rueidislocks) mutex(name string) mutex { return rueidislockName{r, name} }

type rueidislockName struct {
	rueidislocks
	name string
}

func (r rueidislockName) lock(ctx context.Context) (func() error, error) {
	for {
		wait, cancel := context.WithCancel(ctx)
		alarm := time.AfterFunc(r.nap, cancel)
		_, release, err := r.locker.WithContext(wait, r.name)
		if onTime := alarm.Stop(); err == nil && onTime {
			return func() error {
				release()
				cancel()
				return nil
			}, nil
		}
		if err == nil { // taken at the last moment, and given back by the alarm
			release()
		}
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
}

func (r rueidislocks) close() error {
	r.locker.Close()
	return nil
}
