package hub

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/caught"
)

// The pace of examinations, of each store.
const (
	examPace   = time.Minute // from the end of one to the beginning of the next, at least
	examFactor = 50          // times how long it took, so that it costs a fiftieth of the time
)

// Examination is what an examination of a store has found.
type Examination struct {
	At     time.Time         // when it began
	Report *interlock.Report // never nil
	Err    error             // why it is not whole, or nil
}

// Doctor examines a store, once for all who ask. A store that nobody asks about is not examined.
type Doctor struct {
	store *Store

	mu     sync.Mutex
	newest *Examination  // nil before the first
	next   time.Time     // none may begin before
	under  chan struct{} // closed when that under way has ended; nil while there is none
}

// Examine returns the newest examination, nil before the first. It makes one that is due, and waits
// for that until ctx ends.
func (d *Doctor) Examine(ctx context.Context) *Examination {
	if under := d.begin(); under != nil {
		select {
		case <-under:
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest
}

// begin begins an examination that is due, and returns the channel that is closed at its end; that
// of the one under way, if there is one; nil if none is due.
func (d *Doctor) begin() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.under == nil && !time.Now().Before(d.next) && d.store.life.Go(d.examine) {
		d.under = make(chan struct{})
	}
	return d.under
}

// examine makes an examination.
func (d *Doctor) examine() {
	x := &Examination{At: time.Now()}
	x.Report, x.Err = d.report()
	if x.Report == nil {
		x.Report = &interlock.Report{Findings: []interlock.Finding{}}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest = x
	d.next = time.Now().Add(max(examPace, examFactor*time.Since(x.At)))
	close(d.under)
	d.under = nil
}

// report looks at the store as interlock doctor does, without writing.
func (d *Doctor) report() (_ *interlock.Report, err error) {
	defer caught.Panic(&err, d.store.log, d.store.name)
	c, err := interlock.New(d.store.driver, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // which leaves the driver open
	return c.Doctor(d.store.life.Context())
}
