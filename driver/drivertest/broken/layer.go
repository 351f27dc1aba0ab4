package broken

import (
	"context"
	"iter"
	"os"
	"sync"
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
		return inheritor{s}, nil
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

// look shows a line to a fault, at no cost and over a wire that nobody cuts.
func (l *layer) look(name string) driver.Line {
	line, err := l.memory.Share().Line(context.Background(), name)
	if err != nil {
		panic(err) // nobody has cut this wire
	}
	return line
}

// remains puts a claim in line that nobody knows of.
func (l *layer) remains(c driver.Claim) {
	ctx := context.Background()
	s, err := l.memory.Share().Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Hour})
	if err != nil {
		panic(err) // nobody has cut this wire
	}
	c.ID, c.Queue = driver.NewID(), true
	_, _ = s.Acquire(ctx, c) // refused where it does not go with those that stand there
}

// endless is ctx without its end, until the driver is closed.
func (l *layer) endless(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		<-l.closed
		cancel()
	}()
	return ctx
}
