package pglock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Driver is a PostgreSQL as a store of locks by technique rows. It is safe for concurrent use.
type Driver struct {
	*server
	owned bool // the source was opened for this driver
	safe  bool // the server flushes what it commits

	cancel   context.CancelFunc // ends the connection that listens
	sessions *rowline.Sessions
	notifier notifier
}

const (
	minTTL = 100 * time.Millisecond
	grain  = 50 * time.Millisecond // of the look at a claim that has run out
)

// newTables returns a driver whose server was not looked at yet.
func newTables(s *server) *Driver {
	d := &Driver{server: s}
	channel := "il_" + driver.NewID()
	d.notifier = notifier{server: s, channel: channel, waiting: map[string]*rowline.Claim{}}
	d.notifier.ctx, d.cancel = context.WithCancel(context.Background())
	d.sessions = rowline.New(rowline.Config{
		Store: rows{s, channel}, Package: "pglock", Timeout: s.options.Timeout, MinTTL: minTTL, MaxName: maxName,
	})
	return d
}

// flushes reads the settings fsync and full_page_writes.
func (d *Driver) flushes(sync, pages []byte) {
	if d.safe = string(sync) == "on" && string(pages) == "on"; !d.safe {
		d.options.Logger.Warn("pglock: fsync or full_page_writes is off: a machine that crashes can lose locks and tokens, or the database")
	}
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits {
	var events driver.Kinds
	if d.sessions.Notifier != nil {
		events = driver.AllKinds
	}
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: events, Expires: true,
		Fence: driver.Durable, MinTTL: minTTL, Grain: grain,
		Survives: driver.Survival{Process: true, Restart: true, Machine: d.safe},
	}
}

// Open implements driver.Driver.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	return d.sessions.Open(ctx, spec)
}

// Close implements driver.Driver.
func (d *Driver) Close(ctx context.Context) error {
	first, err := d.sessions.Close(ctx)
	if !first {
		return nil
	}
	d.cancel()
	_ = sessions.Aside(ctx, 0, func(context.Context) error { // a request may hold a connection that does not answer
		d.notifier.awaitEnd()
		if d.owned {
			d.source.close()
		}
		return nil
	})
	return err
}
