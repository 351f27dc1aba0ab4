package web

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/caught"
)

// The pace of a name.
const (
	nameRenewed = 2 * time.Second        // between looks at a name whose changes the store tells: of renewals it says nothing
	namePolled  = time.Second            // of one that the store does not tell of
	nameTold    = 100 * time.Millisecond // from one change that viewers are told of to the next
	lookLimit   = 10 * time.Second
)

// followed is a name that somebody looks at, for all who do. Two goroutines ask: one waits for changes by the store's Watch, the other
// looks now and then, since a renewal is no change and moves the end of a claim. A look that began before the last change is dropped.
type followed struct {
	b      *hub
	name   string
	cancel context.CancelFunc

	// Guarded by b.mu.
	viewers map[*mailbox]struct{}
	sight   *sight
	failure *failure
	told    time.Time   // the viewers, last
	late    *time.Timer // when they are told of what came since; nil if nothing did
}

// join has m told of every change of a name, and of how it stands at once, until leave is called.
func (b *hub) join(name string, m *mailbox) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looks == nil {
		m.put(state{failure: &failure{err: errBlind}})
		return func() {}
	}
	f := b.followed[name]
	if f == nil {
		f = &followed{b: b, name: name, viewers: map[*mailbox]struct{}{}}
		b.followed[name] = f
		f.start()
	}
	f.viewers[m] = struct{}{}
	if f.sight != nil || f.failure != nil {
		m.put(state{line: f.sight, failure: f.failure})
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(f.viewers, m)
		if len(f.viewers) == 0 && b.followed[name] == f {
			delete(b.followed, name)
			f.cancel()
			b.history.follow(name, false)
		}
	}
}

// start begins to follow the name.
func (f *followed) start() {
	ctx, cancel := context.WithCancel(f.b.h.ctx)
	f.cancel = cancel
	f.b.history.follow(f.name, true)
	watcher, tells := f.b.store.Driver.(driver.Watcher)
	if tells && f.b.h.begin() {
		go func() {
			defer f.b.h.work.Done()
			f.watch(ctx, watcher)
		}()
	}
	pace := namePolled
	if tells {
		pace = nameRenewed
	}
	if f.b.h.begin() {
		go func() {
			defer f.b.h.work.Done()
			f.look(ctx, pace, tells)
		}()
	}
}

// watch takes in what the store tells, until ctx ends. A store that goes away is asked again each second.
func (f *followed) watch(ctx context.Context, w driver.Watcher) {
	for ctx.Err() == nil {
		switch err := f.listen(ctx, w); {
		case errors.Is(err, errors.ErrUnsupported):
			f.look(ctx, namePolled, false)
			return
		case err != nil:
			f.tell(ctx, driver.Line{}, err, time.Time{})
		}
		pause(ctx, time.Second)
	}
}

// listen takes in what the store tells until it tells no more. It returns an error that it has not told.
func (f *followed) listen(ctx context.Context, w driver.Watcher) (err error) {
	defer caught.Panic(&err, f.b.h.log, f.b.store.Name)
	for l, err := range w.Watch(ctx, f.name) {
		if errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		f.tell(ctx, l, err, time.Time{})
	}
	return nil
}

// look looks at the name at a pace, until ctx ends. The first look is the watch's, where there is one.
func (f *followed) look(ctx context.Context, pace time.Duration, later bool) {
	if later {
		pause(ctx, pace)
	}
	for ctx.Err() == nil {
		began := time.Now()
		l, err := f.b.ask(ctx, f.name)
		f.tell(ctx, l, err, began)
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		took := time.Since(began)
		pause(ctx, max(pace, paceFactor*took)-took)
	}
}

// tell notes a state of the name and tells the viewers: one that the store had after it was asked, or
// that its watch told just now, if that is zero. A look that began in the very moment of the last
// change may have read what was before it, so it says nothing.
func (f *followed) tell(ctx context.Context, l driver.Line, err error, asked time.Time) {
	b := f.b
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return // nobody looks any more
	case err == nil && f.sight != nil && !asked.IsZero() && !asked.After(f.sight.at):
		return // a change has overtaken it
	case err != nil && f.failure == nil:
		f.failure = &failure{since: time.Now(), err: err}
	case err != nil:
		f.failure = &failure{since: f.failure.since, err: err}
	default:
		if before, known := f.before(); known {
			b.history.note(f.name, between(before, l.Claims, time.Now())...)
		}
		if asked.IsZero() {
			asked = time.Now()
		}
		f.sight, f.failure = &sight{Line: l, at: asked}, nil
	}
	f.publish()
}

// publish tells the viewers, but not oftener than it is worth drawing the line: what comes sooner is told together. Called under b.mu.
func (f *followed) publish() {
	rest := time.Until(f.told.Add(nameTold))
	if rest > 0 && f.late == nil {
		f.late = time.AfterFunc(rest, func() {
			f.b.mu.Lock()
			defer f.b.mu.Unlock()
			f.late = nil
			f.publish()
		})
	}
	if rest > 0 {
		return
	}
	f.told = time.Now()
	for m := range f.viewers {
		m.put(state{line: f.sight, failure: f.failure})
	}
}

// before is who stood in the line before, if that is known.
func (f *followed) before() (claims []driver.Holder, known bool) {
	if f.sight != nil {
		return f.sight.Claims, true
	}
	return f.b.history.before(f.name)
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
