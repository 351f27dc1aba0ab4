package cli

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// view is a store that was opened for reading.
type view struct {
	driver.Inspector
	store string // for people
	close func()
}

// key returns where the store keeps a name, as interlock.Client.Key does.
func (v *view) key(name string) string {
	if k, ok := v.Inspector.(driver.Keyer); ok {
		return k.Key(name)
	}
	return name
}

// follow yields the line of name now and whenever it has changed: by events, or by asking each
// second where the store has none.
func follow(ctx context.Context, i driver.Inspector, name string) iter.Seq2[driver.Line, error] {
	if w, ok := i.(driver.Watcher); ok {
		return w.Watch(ctx, name)
	}
	return driver.PollLine(ctx, time.Second, func(ctx context.Context) (driver.Line, error) { return i.Line(ctx, name) })
}

// away is how long followOn waits before it asks a store again.
const away = time.Second

// followOn is follow that outlives the store: once a line was seen, a store that cannot be reached
// is asked again each second, and tell is called when that begins and when it is over. The first
// line after that comes in any case, with what has changed meanwhile.
func followOn(ctx context.Context, v *view, name string, tell func(string)) iter.Seq2[driver.Line, error] {
	return func(yield func(driver.Line, error) bool) {
		seen, gone := false, false
		for {
			for l, err := range follow(ctx, v.Inspector, name) {
				if err != nil && (!seen || ctx.Err() != nil || !passes(err)) {
					yield(driver.Line{}, err)
					return
				}
				switch {
				case err != nil && !gone:
					tell("the store is away: " + oneLine(inStore(err, v.store)) + "; watching goes on when it is there again")
				case err == nil && gone:
					tell("the store is there again: " + v.store)
				}
				seen, gone = true, err != nil
				if err == nil && !yield(l, nil) {
					return
				}
			}
			pause := time.NewTimer(away)
			select {
			case <-ctx.Done(): // which the store's next answer says
			case <-pause.C:
			}
			pause.Stop()
		}
	}
}

// passes reports whether an error of a store may pass by itself.
func passes(err error) bool {
	return statusOf(storeError(err)) == exitStore && !errors.Is(err, driver.ErrRefused) && !errors.Is(err, errors.ErrUnsupported)
}
