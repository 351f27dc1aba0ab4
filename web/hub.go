package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/caught"
	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// hub asks one store, for all who look. It asks only while somebody does: for the list of names at most every second or ten times as
// long as that took, and for a name that somebody follows whenever it changes. Nothing that a viewer does holds up another, or the
// hub: each has a mailbox of one state, of which the newest wins.
type hub struct {
	h       *Handler
	store   Store
	looks   driver.Inspector // nil: the store cannot be looked into
	history *history
	pulse   pulse
	exam    examined

	mu       sync.Mutex
	list     listing
	followed map[string]*followed
}

var storeName = lazyregexp.New(`^[A-Za-z0-9._-]{1,64}$`)

func newHub(h *Handler, s Store, stores int) (*hub, error) {
	switch {
	case !storeName.MatchString(s.Name):
		return nil, fmt.Errorf("web: a store is called %.100q: want 1 to 64 of a–z A–Z 0–9 . _ -", s.Name)
	case s.Driver == nil:
		return nil, fmt.Errorf("web: store %q has no driver", s.Name)
	}
	s.URL = driver.Redact(s.URL)
	looks, _ := s.Driver.(driver.Inspector)
	return &hub{
		h: h, store: s, looks: looks, history: newHistory(h.opts.History / stores), pulse: pulse{turns: make(chan struct{}, mostLooks)},
		followed: map[string]*followed{},
	}, nil
}

// The pace of the list.
const (
	shortestPace = time.Second      // from one reading to the next
	paceFactor   = 10               // of what a reading took: so a tenth of its time at most the store is busy with it
	failurePause = 2 * time.Second  // after a reading that failed
	readingLimit = 30 * time.Second // of one reading
)

// listing is the newest list of a store, and who waits for the next.
type listing struct {
	snap    *snapshot // nil before the first
	failure *failure  // of the last reading, nil if there was none
	next    time.Time // no reading before
	reading chan struct{}
	viewers map[*mailbox]struct{}
	running bool // the loop for the viewers
}

// snapshot is a list as it was read. Nobody changes it.
type snapshot struct {
	lines   []driver.Line // in order of name
	at      time.Time     // when the reading began
	took    time.Duration
	partial error // why there may be more
	drawn   drawn
}

// failure is why a store could not be asked, and since when.
type failure struct {
	since time.Time
	err   error
}

// errBlind is why a store cannot be looked into.
var errBlind = fmt.Errorf("web: this store cannot be looked into: %w", errors.ErrUnsupported)

// see returns the newest list, and what is wrong with the store now. A list that is due is read first, by one request for all who ask
// meanwhile, and waited for until ctx ends; then what there is is returned, or nil before the first. A list that was cut short comes with its own
// error in partial.
func (b *hub) see(ctx context.Context) (*snapshot, *failure) {
	if b.looks == nil {
		return nil, &failure{err: errBlind}
	}
	b.mu.Lock()
	reading := b.read()
	b.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list.snap, b.list.failure
}

// How long a page waits for a list that is being read: for the first one, without which it has nothing to show, and for a newer one.
const (
	firstLook = time.Second
	nextLook  = 200 * time.Millisecond
)

// seeSoon is see for a page, which does without the list that is being read if that takes long.
func (b *hub) seeSoon(ctx context.Context) (*snapshot, *failure) {
	patience := nextLook
	b.mu.Lock()
	if b.list.snap == nil {
		patience = firstLook
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return b.see(ctx)
}

// read has a list read that is due, and returns what is closed when it is there; nil if none is due. Called under b.mu.
func (b *hub) read() chan struct{} {
	l := &b.list
	if l.reading != nil {
		return l.reading
	}
	if time.Now().Before(l.next) || l.failure != nil && errors.Is(l.failure.err, errors.ErrUnsupported) || !b.h.begin() {
		return nil
	}
	l.reading = make(chan struct{})
	go b.reads()
	return l.reading
}

// lookAtAll asks the store for its list.
func (b *hub) lookAtAll(ctx context.Context) (lines []driver.Line, err error) {
	defer caught.Panic(&err, b.h.log, b.store.Name)
	return b.looks.Lines(ctx, "")
}

// reads reads the list once.
func (b *hub) reads() {
	defer b.h.work.Done()
	ctx, cancel := context.WithTimeout(b.h.ctx, readingLimit)
	defer cancel()
	s := &snapshot{at: time.Now()}
	var err error
	s.lines, err = b.lookAtAll(ctx)
	s.took = time.Since(s.at)
	if err != nil && len(s.lines) > 0 {
		s.partial, err = err, nil
	}
	if err == nil {
		b.history.list(s)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.list
	if err == nil {
		l.snap, l.failure, l.next = s, nil, s.at.Add(max(shortestPace, paceFactor*s.took))
	} else {
		if l.failure == nil {
			l.failure = &failure{since: s.at}
		}
		l.failure = &failure{since: l.failure.since, err: err}
		l.next = time.Now().Add(failurePause)
	}
	close(l.reading)
	l.reading = nil
	for m := range l.viewers {
		m.put(state{snap: l.snap, failure: l.failure})
	}
}
