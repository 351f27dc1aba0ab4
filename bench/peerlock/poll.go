package main

import (
	"context"
	"errors"
	"time"
)

// locker is one lock of another library, used by one goroutine.
type locker interface {
	// lock waits at most that long, for ever if it is negative, and says what
	// the library wrote. Its error is errTimeout when the time is over.
	lock(ctx context.Context, wait time.Duration) (detail string, err error)
	unlock(ctx context.Context) error
	extend(ctx context.Context, ttl time.Duration) error
	// close releases what is held.
	close(ctx context.Context)
}

var (
	errTimeout = errors.New("somebody else holds the lock")
	errNotHeld = errors.New("the lock is not held here")
)

// kinds opens the libraries by name.
var kinds = map[string]func(ctx context.Context, addr, name string, ttl time.Duration) (locker, error){
	"redsync":     openRedsync,
	"redislock":   openRedislock,
	"rueidislock": openRueidislock,

	goZooKeeper: openZooKeeper,
}

// goZooKeeper is the only kind whose servers are ZooKeepers.
const goZooKeeper = "go-zookeeper"

// pollEvery is the pause between two tries of libraries that poll.
const pollEvery = 20 * time.Millisecond

// poll tries until it succeeds, fails, or wait is over. The libraries' own
// loops end with a context; their requests would end with it, too, and a
// request that is cut short may leave a lock that nobody releases.
func poll(wait time.Duration, try func() (taken bool, err error)) error {
	end := time.Now().Add(wait)
	pause := time.NewTicker(pollEvery)
	defer pause.Stop()
	for {
		taken, err := try()
		if taken || err != nil {
			return err
		}
		if wait >= 0 && !time.Now().Before(end) {
			return errTimeout
		}
		<-pause.C
	}
}
