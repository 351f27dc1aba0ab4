package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// link is one client of ours behind a wire of its own.
type link struct {
	*wire.Wire
	client *interlock.Client
}

func newLink(t *testing.T, server *servertest.Server, parameters string, o interlock.Options, wrap func(driver.Driver) driver.Driver) *link {
	t.Helper()
	l := &link{Wire: wire.New(t, server.Addr())}
	d, err := driver.OpenURL(t.Context(), "redis://"+l.Addr()+parameters)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		d = wrap(d)
	}
	o.Logger, o.Patience = slog.New(slog.DiscardHandler), age
	if l.client, err = interlock.New(d, &o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		_ = l.client.Close() // there is nobody to tell
	})
	return l
}

// rest waits for a random part of d.
func rest(d time.Duration) {
	timer := time.NewTimer(rand.N(d))
	defer timer.Stop()
	<-timer.C
}

// use uses the link, and makes names to use it for.
func (l *link) use(prefix string, n int) (names []string, err error) {
	lease, err := l.client.Mutex(prefix).Lock(context.Background())
	if err != nil {
		return nil, err
	}
	for i := range n {
		names = append(names, fmt.Sprintf("%s/%d", prefix, i))
	}
	if err := lease.Release(); err != nil && !errors.Is(err, interlock.ErrUncertain) {
		return nil, err
	}
	return names, nil
}

// cancel wants the locks, each for a moment only.
func (l *link) cancel(names []string) error {
	return all(len(names), func(i int) error {
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(100*time.Millisecond))
		defer cancel()
		if _, err := l.client.Mutex(names[i]).Lock(ctx); err == nil {
			return fmt.Errorf("%s was acquired although nothing comes through", names[i])
		}
		return nil
	})
}
