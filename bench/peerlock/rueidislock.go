package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidisLock is rueidislock with the one key that its README asks for on
// one server. It extends its locks by itself.
type rueidisLock struct {
	locker       rueidislock.Locker
	prefix, name string
	held         context.Context //nolint:containedctx // it is how the library says that it holds
	release      context.CancelFunc
}

func openRueidislock(_ context.Context, addr, name string, ttl time.Duration) (locker, error) {
	l := &rueidisLock{prefix: "rueidislock", name: name}
	if before, after, cut := strings.Cut(name, ":0:"); cut {
		l.prefix, l.name = before, after
	}
	var err error
	l.locker, err = rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyPrefix:    l.prefix, KeyMajority: 1, KeyValidity: ttl, NoLoopTracking: true,
	})
	return l, err
}

func (l *rueidisLock) lock(ctx context.Context, wait time.Duration) (string, error) {
	// The context that bounds a wait bounds the hold, too, so it ends by a
	// timer that a success stops.
	ctx, cancel := context.WithCancel(ctx)
	var held context.Context
	var release context.CancelFunc
	var err error
	switch {
	case wait == 0:
		held, release, err = l.locker.TryWithContext(ctx, l.name)
	case wait < 0:
		held, release, err = l.locker.WithContext(ctx, l.name)
	default:
		t := time.AfterFunc(wait, cancel)
		held, release, err = l.locker.WithContext(ctx, l.name)
		if !t.Stop() && err == nil { // taken at the last moment, and given back by the timer
			release()
			err = context.Canceled
		}
	}
	if err != nil {
		cancel()
		if errors.Is(err, rueidislock.ErrNotLocked) || errors.Is(err, context.Canceled) {
			err = errTimeout
		}
		return "", err
	}
	l.held = held
	l.release = func() { release(); cancel() }
	return l.prefix + ":0:" + l.name, nil
}

// unlock says ERR when the library had noticed a loss before.
func (l *rueidisLock) unlock(context.Context) error {
	if l.held == nil {
		return errNotHeld
	}
	lost := l.held.Err()
	l.release()
	l.held = nil
	return lost
}

func (l *rueidisLock) extend(context.Context, time.Duration) error {
	return errors.New("rueidislock extends by itself")
}

func (l *rueidisLock) close(ctx context.Context) {
	_ = l.unlock(ctx)
	l.locker.Close()
}
