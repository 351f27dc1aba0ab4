package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislocks is rueidislock as its README sets it up for one server of
// Redis 7: one key, and no notices of its own writes. It extends each lock
// by a goroutine and a script.
type rueidislocks struct{ locker rueidislock.Locker }

func openRueidislock(_ context.Context, p place) (locker, error) {
	o := rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{p.Redis}},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: p.TTL,
	}
	if p.TTL > 0 {
		o.ExtendInterval = renewalPeriod(p.TTL)
	}
	l, err := rueidislock.NewLocker(o)
	return rueidislocks{l}, err
}

// rueidislockKey is where it keeps its lock of that name.
func rueidislockKey(name string) string { return "rueidislock:0:" + name }

func (r rueidislocks) mutex(name string) mutex { return rueidislockName{r, name} }

type rueidislockName struct {
	rueidislocks
	name string
}

func (r rueidislockName) lock(ctx context.Context) (func() error, error) {
	_, release, err := r.locker.WithContext(ctx, r.name)
	if err != nil {
		return nil, err
	}
	return func() error { release(); return nil }, nil
}

func (r rueidislocks) close() error {
	r.locker.Close()
	return nil
}
