package broken

import (
	"context"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// fault says what a layer does instead of passing a call on. What is nil is passed on.
type fault struct {
	traits  func(*driver.Traits)
	valid   func(time.Duration) time.Duration
	name    func(string) string
	open    func(*session)
	acquire func(*session, context.Context, driver.Claim) (driver.Grant, error)
	wait    func(*session, context.Context, driver.Claim) (driver.Grant, error)
	release func(*session, context.Context, driver.Claim) (bool, error)
	requeue func(s *session, ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error)
	renew   func(*session, context.Context) (driver.Renewal, error)
	close   func(*session, context.Context) error
	lost    func(*session) <-chan driver.Loss
	line    func(*layer, *driver.Line)
	breaks  func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error
	kill    func(*layer)                          // what the store sees of a death; nil: nothing
	inherit func(*session) []*os.File             // nil: sessions are no Inheritors
	restart func(*memlock.Driver) *memlock.Driver // what is there after a restart; nil: an empty store
	writers *writers                              // the writers' locks of the store, if it has such
	watch   func(*layer, iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error]

	validIn func(*session, time.Duration) time.Duration // as valid, of one session
	opens   func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error)
	closes  func(l *layer, ctx context.Context) error
	nudge   func(*session) <-chan struct{}
	looks   func(l *layer, ctx context.Context, name string) (driver.Line, error)
	lines   func(l *layer, ctx context.Context, prefix string) ([]driver.Line, error)
}

// layer is a driver over memlock with a fault.
type layer struct {
	memory *memlock.Driver
	fault  *fault

	mu       sync.Mutex
	sessions []*session
	closed   chan struct{}
}

func newLayer(m *memlock.Driver, f *fault) *layer {
	return &layer{memory: m, fault: f, closed: make(chan struct{})}
}

// session is a session over memlock's, with what faults remember of its claims.
type session struct {
	driver.Session
	l    *layer
	spec driver.Spec

	mu      sync.Mutex
	claims  map[string]driver.Claim // those acquired and not released
	held    map[string]driver.Grant // as last answered
	marked  map[string]bool         // whatever the fault means by it
	started map[string]time.Time    // when first acquired
	renewed chan struct{}           // closed by the next Renew
	over    bool                    // Close was called
	counter atomic.Uint64
}

func (l *layer) Traits() driver.Traits {
	t := l.memory.Traits()
	if l.fault.traits != nil {
		l.fault.traits(&t)
	}
	return t
}

func (l *layer) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	open := l.memory.Open
	if f := l.fault.opens; f != nil {
		open = func(ctx context.Context, spec driver.Spec) (driver.Session, error) { return f(l, ctx, spec) }
	}
	inner, err := open(ctx, spec)
	if err != nil {
		return nil, err
	}
	s := &session{
		Session: inner, l: l, spec: spec,
		claims: map[string]driver.Claim{}, held: map[string]driver.Grant{}, marked: map[string]bool{},
		started: map[string]time.Time{}, renewed: make(chan struct{}),
	}
	l.mu.Lock()
	l.sessions = append(l.sessions, s)
	l.mu.Unlock()
	if l.fault.open != nil {
		l.fault.open(s)
	}
	if l.fault.inherit != nil {
		return heir{s}, nil
	}
	return s, nil
}

func (l *layer) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	if l.fault.closes != nil {
		return l.fault.closes(l, ctx)
	}
	return l.memory.Close(ctx)
}

func (l *layer) Line(ctx context.Context, name string) (driver.Line, error) {
	look := l.memory.Line
	if f := l.fault.looks; f != nil {
		look = func(ctx context.Context, name string) (driver.Line, error) { return f(l, ctx, name) }
	}
	line, err := look(ctx, l.name(name))
	if l.fault.line != nil {
		l.fault.line(l, &line)
	}
	return line, err
}

func (l *layer) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	if l.fault.lines != nil {
		return l.fault.lines(l, ctx, prefix)
	}
	return l.memory.Lines(ctx, prefix)
}

func (l *layer) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	if l.fault.breaks != nil {
		return l.fault.breaks(l, ctx, name, publicID, fence, now)
	}
	return l.memory.Break(ctx, name, publicID, fence, now)
}

func (l *layer) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	lines := l.memory.Watch(ctx, l.name(name))
	if l.fault.watch != nil {
		return l.fault.watch(l, lines)
	}
	return lines
}

func (l *layer) name(name string) string {
	if l.fault.name == nil {
		return name
	}
	return l.fault.name(name)
}

func (s *session) Valid() time.Duration {
	if s.l.fault.valid != nil {
		return s.l.fault.valid(s.Session.Valid())
	}
	if s.l.fault.validIn != nil {
		return s.l.fault.validIn(s, s.Session.Valid())
	}
	return s.Session.Valid()
}

func (s *session) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c.Name = s.l.name(c.Name)
	do := s.acquire
	if f := s.l.fault.acquire; f != nil {
		do = func(ctx context.Context, c driver.Claim) (driver.Grant, error) { return f(s, ctx, c) }
	}
	g, err := do(ctx, c)
	s.note(c, g, err)
	return g, err
}

func (s *session) acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.Session.Acquire(ctx, c)
}

func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c.Name = s.l.name(c.Name)
	do := s.Session.Wait
	if f := s.l.fault.wait; f != nil {
		do = func(ctx context.Context, c driver.Claim) (driver.Grant, error) { return f(s, ctx, c) }
	}
	g, err := do(ctx, c)
	s.note(c, g, err)
	return g, err
}

// note remembers an answer.
func (s *session) note(c driver.Claim, g driver.Grant, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || !g.Held && !c.Queue {
		return
	}
	s.claims[c.ID], s.held[c.ID] = c, g
	if s.started[c.ID].IsZero() {
		s.started[c.ID] = time.Now()
	}
}

func (s *session) Release(ctx context.Context, c driver.Claim) (bool, error) {
	c.Name = s.l.name(c.Name)
	do := s.Session.Release
	if f := s.l.fault.release; f != nil {
		do = func(ctx context.Context, c driver.Claim) (bool, error) { return f(s, ctx, c) }
	}
	held, err := do(ctx, c)
	if err == nil {
		s.forget(c)
	}
	return held, err
}

func (s *session) forget(c driver.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, c.ID)
	delete(s.held, c.ID)
}

func (s *session) Requeue(ctx context.Context, old, next driver.Claim) (g driver.Grant, held bool, err error) {
	old.Name, next.Name = s.l.name(old.Name), s.l.name(next.Name)
	if f := s.l.fault.requeue; f != nil {
		g, held, err = f(s, ctx, old, next)
	} else {
		g, held, err = s.Session.(driver.Requeuer).Requeue(ctx, old, next)
	}
	s.note(next, g, err)
	if err == nil {
		s.forget(old)
	}
	return g, held, err
}

func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	s.mu.Lock()
	close(s.renewed)
	s.renewed = make(chan struct{})
	s.mu.Unlock()
	if f := s.l.fault.renew; f != nil {
		return f(s, ctx)
	}
	r, err := s.Session.Renew(ctx)
	if s.l.fault.valid != nil {
		r.Valid = s.l.fault.valid(r.Valid)
	}
	return r, err
}

func (s *session) Close(ctx context.Context) error {
	if f := s.l.fault.close; f != nil {
		return f(s, ctx)
	}
	return s.Session.Close(ctx)
}

func (s *session) Lost() <-chan driver.Loss {
	if s.l.fault.lost != nil {
		return s.l.fault.lost(s)
	}
	return s.Session.(driver.LossNotifier).Lost()
}

func (s *session) Nudge() <-chan struct{} {
	if s.l.fault.nudge != nil {
		return s.l.fault.nudge(s)
	}
	return s.Session.(driver.Nudger).Nudge()
}

// heir is a session whose liveness is bound to files.
type heir struct{ *session }

func (h heir) Inherit() []*os.File { return h.l.fault.inherit(h.session) }

// known returns what was last answered of a claim.
func (s *session) known(id string) driver.Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id]
}

// mark sets or clears the fault's mark of a claim and reports whether it was set.
func (s *session) mark(id string, to bool) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.marked[id]
	s.marked[id] = to
	return was
}

func (s *session) isMarked(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marked[id]
}

// all returns the claims that stand.
func (s *session) all() []driver.Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cs []driver.Claim
	for _, c := range s.claims {
		cs = append(cs, c)
	}
	return cs
}
