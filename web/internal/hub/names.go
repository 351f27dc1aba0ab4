package hub

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The pace of a name.
const (
	nameWatched = 2 * time.Second        // between looks at a name that is watched, at renewals
	namePolled  = time.Second            // between looks at one that cannot be watched
	nameTold    = 100 * time.Millisecond // from one state that viewers are sent to the next
)

// Names follows the names of a store that somebody looks at, each once for all who do.
type Names struct {
	store   *Store
	history *History

	mu       sync.Mutex
	followed map[string]*followed
}

func newNames(s *Store, h *History) *Names {
	return &Names{store: s, history: h, followed: map[string]*followed{}}
}

// followed is a name that somebody looks at. Two goroutines ask: one waits for changes by the
// store's Watch, the other looks now and then, since a renewal is no change and moves the end of a
// claim. An answer to a look that began before the last change is dropped.
type followed struct {
	of     *Names
	name   string
	cancel context.CancelFunc // of both goroutines

	// Guarded by of.mu.
	viewers map[*Mailbox]struct{}
	newest  *Observation // nil before the first
	failure *Failure     // of the last answer, nil if there was none
	told    time.Time    // when the viewers were told last
	late    *time.Timer  // when they are told of what came since; nil if nothing did
}

// Follow puts every change of a name into m, and how it stands at once, until leave is called.
func (n *Names) Follow(name string, m *Mailbox) (leave func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.store.Blind() {
		m.put(State{Failure: Blind()})
		return func() {}
	}
	f := n.followed[name]
	if f == nil {
		f = &followed{of: n, name: name, viewers: map[*Mailbox]struct{}{}}
		n.followed[name] = f
		f.start()
	}
	f.viewers[m] = struct{}{}
	if f.newest != nil || f.failure != nil {
		m.put(State{Line: f.newest, Failure: f.failure})
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(f.viewers, m)
		if len(f.viewers) == 0 && n.followed[name] == f {
			delete(n.followed, name)
			f.cancel()
			n.history.follow(name, false)
		}
	}
}

// Current returns how a name stands: as those who follow it were told, or by a look.
func (n *Names) Current(ctx context.Context, name string) State {
	if s := n.told(name); s.Line != nil {
		return s
	}
	began := time.Now()
	l, err := n.store.Line(ctx, name)
	if err != nil {
		return State{Failure: &Failure{Since: began, Err: err}}
	}
	return State{Line: &Observation{Line: l, At: began}}
}

// told returns what those who follow a name were told, nothing if nobody does.
func (n *Names) told(name string) State {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.followed[name]; f != nil {
		return State{Line: f.newest, Failure: f.failure}
	}
	return State{}
}

// start begins to follow the name.
func (f *followed) start() {
	life := f.of.store.life
	ctx, cancel := context.WithCancel(life.Context())
	f.cancel = cancel
	f.of.history.follow(f.name, true)
	if !f.of.store.Watches() {
		life.Go(func() { f.look(ctx, namePolled) })
		return
	}
	life.Go(func() { f.watch(ctx) })
	life.Go(func() { // the first look is the watch's
		pause(ctx, nameWatched)
		f.look(ctx, nameWatched)
	})
}

// watch records what the store tells, until ctx ends. A store that goes away is asked again each
// second; one that cannot watch is looked at instead.
func (f *followed) watch(ctx context.Context) {
	each := func(l driver.Line, err error) { f.record(ctx, l, err, time.Time{}) }
	for ctx.Err() == nil {
		switch err := f.of.store.watch(ctx, f.name, each); {
		case errors.Is(err, errors.ErrUnsupported):
			f.look(ctx, namePolled)
			return
		case err != nil:
			f.record(ctx, driver.Line{}, err, time.Time{})
		}
		pause(ctx, time.Second)
	}
}

// look looks at the name at a pace, until ctx ends or the store cannot do that.
func (f *followed) look(ctx context.Context, pace time.Duration) {
	for ctx.Err() == nil {
		began := time.Now()
		l, err := f.of.store.Line(ctx, f.name)
		f.record(ctx, l, err, began)
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		took := time.Since(began)
		pause(ctx, max(pace, paceFactor*took)-took)
	}
}

// record records how the name stands, and tells the viewers: as the store had it after it was
// asked, or as its watch told just now, if that is zero. A look that began in the very moment of
// the last change may have read what was before it, so it is dropped.
func (f *followed) record(ctx context.Context, l driver.Line, err error, asked time.Time) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return // nobody looks any more
	case err == nil && f.newest != nil && !asked.IsZero() && !asked.After(f.newest.At):
		return // a change has overtaken it
	case err != nil:
		f.failure = f.failure.next(time.Now(), err)
	default:
		if before, known := f.before(); known {
			f.of.history.Add(f.name, between(before, l.Claims, time.Now())...)
		}
		if asked.IsZero() {
			asked = time.Now()
		}
		f.newest, f.failure = &Observation{Line: l, At: asked}, nil
	}
	f.publish()
}

// publish tells the viewers, but not oftener than it is worth rendering the line: what comes sooner
// is told together. Called under of.mu.
func (f *followed) publish() {
	rest := time.Until(f.told.Add(nameTold))
	if rest > 0 {
		if f.late == nil {
			f.late = time.AfterFunc(rest, f.publishLate)
		}
		return
	}
	f.told = time.Now()
	for m := range f.viewers {
		m.put(State{Line: f.newest, Failure: f.failure})
	}
}

func (f *followed) publishLate() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.late = nil
	f.publish()
}

// before returns the claims of the line before, if they are known. Called under of.mu.
func (f *followed) before() (claims []driver.Holder, known bool) {
	if f.newest != nil {
		return f.newest.Claims, true
	}
	return f.of.history.before(f.name)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
