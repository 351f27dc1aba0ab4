//go:build linux || darwin

package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/flawed"
)

// comeUp is how long a worker may take until it is ready; machines that run tests are slow now and
// then.
const comeUp = time.Minute

// OpenStore opens the store of a URL, also a lock with a flaw, of which no other package knows.
func OpenStore(ctx context.Context, url string) (driver.Driver, error) {
	if strings.HasPrefix(url, flawed.Prefix) {
		return flawed.Open(ctx, url)
	}
	return driver.OpenURL(ctx, url)
}

// Reach opens a store that may be stopped, be down or be cut off at the moment.
func Reach(ctx context.Context, url string) (driver.Driver, error) {
	for deadline := monotonic.Now().Add(comeUp / 2); ; monotonic.Pause(20*time.Millisecond, ctx.Done()) {
		store, err := OpenStore(ctx, url)
		if err == nil || ctx.Err() != nil || monotonic.Now() > deadline {
			return store, err
		}
	}
}

// open opens the store of the job, and a client of it, through a link if there is one.
func (j Job) open(ctx context.Context, l *link, tracer interlock.Tracer) (*interlock.Client, driver.Driver, func() error, error) {
	open := OpenStore
	if j.Harmed {
		open = Reach
	}
	store, err := open(ctx, j.Store)
	if err != nil {
		return nil, nil, nil, err
	}
	wired := store
	if l != nil {
		l.Driver = store
		wired = l
	}
	client, err := interlock.New(wired, &interlock.Options{
		Owner: j.owner(), TTL: j.TTL, Grace: j.Grace, Tracer: tracer,
		Logger: slog.New(slog.DiscardHandler), // it loses leases all the time
	})
	if err != nil {
		return nil, nil, nil, errors.Join(err, store.Close(ctx))
	}
	closeBoth := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := client.Close()
		if j.Harmed && errors.Is(err, interlock.ErrUncertain) {
			err = nil // it ends while servers are away; what is left is looked for afterwards
		}
		return errors.Join(err, store.Close(ctx))
	}
	return client, store, closeBoth, nil
}
