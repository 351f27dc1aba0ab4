package serve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/caught"
)

// store is a driver.Driver that may not be open yet. It is opened again and again until it is; from
// then on the driver keeps up its connections itself, and store watches its answers:
//
//	opening ── opened ──▶ up ◀── an answer, if only that something cannot be done ── down
//	   └─ a pause ─┘       └──────────── no answer ──────────────────────────────────▶
//
// Until it is open it answers that nothing was sent.
type store struct {
	name, url string
	log       *slog.Logger
	latency   *histogram

	mu       sync.Mutex
	driver   driver.Driver // nil until it is open
	err      error         // why the store is down, nil while it is up
	answered time.Time     // when it last did
	list     listing
	breaks   map[string]uint64 // by mode
	probing  chan struct{}     // closed when the probe under way is over
	closed   bool
	reading  bool // of a list for the metrics
	refuses  bool // the list of names, although it answers
}

var (
	_ driver.Driver    = (*store)(nil)
	_ driver.Inspector = (*store)(nil)
	_ driver.Watcher   = (*store)(nil)
	_ driver.Keyer     = (*store)(nil)
	_ driver.Examiner  = (*store)(nil)
)

// errOpening is why a store is down at first.
var errOpening = errors.New("it was not reached yet")

func newStore(name, url string, log *slog.Logger) *store {
	return &store{name: name, url: url, log: log.With("store", name), latency: newHistogram(storeSeconds), err: errOpening, breaks: map[string]uint64{}}
}

// The pauses between two openings: the first one, and what they grow to.
const firstPause, lastPause = 500 * time.Millisecond, 10 * time.Second

// open opens the store, until it is open or ctx ends. It calls first with the outcome of each try.
func (s *store) open(ctx context.Context, first func(error)) {
	t := time.NewTimer(0)
	defer t.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		d, err := s.openURL(ctx)
		if err == nil && !s.opened(ctx, d) {
			_ = d.Close(context.WithoutCancel(ctx)) // the server has ended meanwhile
		}
		first(err)
		if err == nil || errors.As(err, new(*driver.URLError)) { // more tries would not help
			return
		}
		s.seen(ctx, err)
		t.Reset(pause - rand.N(pause/4))
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// openURL tries once to open the store.
func (s *store) openURL(ctx context.Context) (d driver.Driver, err error) {
	defer caught.Panic(&err, s.log, s.name)
	return driver.OpenURL(ctx, s.url)
}

// opened sets the driver, and reports whether the store was not closed meanwhile.
func (s *store) opened(ctx context.Context, d driver.Driver) bool {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.driver = d
	s.mu.Unlock()
	s.seen(ctx, nil)
	return true
}

// get returns the driver, or why there is none.
func (s *store) get() (driver.Driver, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.driver == nil {
		return nil, fmt.Errorf("store %q: %w: %w", s.name, driver.ErrNotSent, s.err)
	}
	return s.driver, nil
}

// inspector returns the driver as one that can be looked into.
func (s *store) inspector() (driver.Inspector, error) {
	d, err := s.get()
	if err != nil {
		return nil, err
	}
	i, ok := d.(driver.Inspector)
	if !ok {
		return nil, fmt.Errorf("store %q cannot be looked into: %w", s.name, errors.ErrUnsupported)
	}
	return i, nil
}

// seen records how a request of the store ended, and logs when it goes down or comes up.
func (s *store) seen(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return // the caller has gone, which says nothing of the store
	}
	if isAnswer(err) {
		s.mu.Lock()
		if s.driver != nil { // it is an answer
			err = nil
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	before, at := s.err, s.answered
	s.err = err
	if err == nil {
		s.answered = time.Now()
	}
	s.mu.Unlock()
	switch {
	case err == nil && errors.Is(before, errOpening):
		s.log.Info("the store is open", "url", driver.Redact(s.url))
	case err == nil && before != nil:
		s.log.Info("the store answers again")
	case err != nil && (before == nil || errors.Is(before, errOpening)):
		last := "never"
		if !at.IsZero() {
			last = at.UTC().Format(time.RFC3339)
		}
		s.log.Warn("the store does not answer", "error", err, "answered", last)
	}
}

// timed makes one request of the store, and records how long it took and how it ended.
func (s *store) timed(ctx context.Context, request func(driver.Inspector) error) error {
	i, err := s.inspector()
	if err != nil {
		return err
	}
	began := time.Now()
	if err = s.caught(i, request); err == nil {
		s.latency.observe(time.Since(began))
	}
	s.seen(ctx, err)
	return err
}

// caught calls request, whose panic is an error.
func (s *store) caught(i driver.Inspector, request func(driver.Inspector) error) (err error) {
	defer caught.Panic(&err, s.log, s.name)
	return request(i)
}

// Open implements driver.Driver. The server takes no lock, but what looks at a store may.
func (s *store) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	d, err := s.get()
	if err != nil {
		return nil, err
	}
	return d.Open(ctx, spec)
}

// Traits implements driver.Driver. Before the store is open they promise nothing.
func (s *store) Traits() driver.Traits {
	d, err := s.get()
	if err != nil {
		return driver.Traits{}
	}
	return d.Traits()
}

// Close implements driver.Driver.
func (s *store) Close(ctx context.Context) (err error) {
	defer caught.Panic(&err, s.log, s.name)
	s.mu.Lock()
	d := s.driver
	s.closed = true
	s.mu.Unlock()
	if d == nil {
		return nil
	}
	return d.Close(ctx)
}

// Key implements driver.Keyer.
func (s *store) Key(name string) string {
	if d, err := s.get(); err == nil {
		if k, ok := d.(driver.Keyer); ok {
			return k.Key(name)
		}
	}
	return name
}

// Line implements driver.Inspector.
func (s *store) Line(ctx context.Context, name string) (l driver.Line, err error) {
	err = s.timed(ctx, func(i driver.Inspector) error {
		l, err = i.Line(ctx, name)
		return err
	})
	return l, err
}

// Lines implements driver.Inspector.
func (s *store) Lines(ctx context.Context, prefix string) (lines []driver.Line, err error) {
	began := time.Now()
	err = s.timed(ctx, func(i driver.Inspector) error {
		lines, err = i.Lines(ctx, prefix)
		return err
	})
	s.listSeen(err)
	if prefix == "" && (err == nil || len(lines) > 0) {
		l := counted(lines, began)
		s.mu.Lock()
		s.list = l
		s.mu.Unlock()
	}
	return lines, err
}

// listSeen records how a reading of the list ended. It logs when a store that answers begins to
// refuse it, and when it no longer does: a password or a right was changed, a record is damaged.
// The log has the reason once, not at each reading.
func (s *store) listSeen(err error) {
	refuses := err != nil && isAnswer(err) && !errors.Is(err, errors.ErrUnsupported)
	if err != nil && !refuses {
		return // which seen has logged
	}
	s.mu.Lock()
	before := s.refuses
	s.refuses = refuses
	s.mu.Unlock()
	switch {
	case refuses && !before:
		s.log.Warn("the store answers, and its names cannot be listed", "error", err)
	case before && !refuses:
		s.log.Info("the names can be listed again")
	}
}

// isAnswer reports whether an error is an answer of the store.
func isAnswer(err error) bool {
	return errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrBadData) || errors.Is(err, errors.ErrUnsupported)
}

// Break implements driver.Inspector.
func (s *store) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	err := s.timed(ctx, func(i driver.Inspector) error { return i.Break(ctx, name, publicID, fence, now) })
	if err == nil {
		mode := "marked"
		if now {
			mode = "now"
		}
		s.mu.Lock()
		s.breaks[mode]++
		s.mu.Unlock()
	}
	return err
}

// Watch implements driver.Watcher. A driver that cannot watch is asked each second.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return func(yield func(driver.Line, error) bool) {
		i, err := s.inspector()
		if err != nil {
			yield(driver.Line{}, err)
			return
		}
		w, ok := i.(driver.Watcher)
		lines := driver.PollLine(ctx, time.Second, func(ctx context.Context) (driver.Line, error) { return i.Line(ctx, name) })
		if ok {
			lines = w.Watch(ctx, name)
		}
		for l, err := range lines {
			s.seen(ctx, err)
			if !yield(l, err) {
				return
			}
		}
	}
}

// Examine implements driver.Examiner, so that the page of the stores has the checks of this one.
func (s *store) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	d, err := s.get()
	if err != nil {
		return nil, err
	}
	x, ok := d.(driver.Examiner)
	if !ok {
		return nil, fmt.Errorf("store %q brings no checks: %w", s.name, errors.ErrUnsupported)
	}
	return x.Examine(ctx, e)
}
