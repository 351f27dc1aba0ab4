package rowline

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/internal/sessions"
)

// server is a database with the rule, and the ears of whoever asks it. Its clock is the bubble's,
// and off by skew.
type server struct {
	mu    sync.Mutex
	lines map[string]*line.Line
	until map[string]time.Time // of sessions
	ttl   map[string]time.Duration
	skew  time.Duration
	asked map[string]int // requests that arrived, by method; a look apart
	there time.Duration  // that a request takes to arrive
	back  time.Duration  // that an answer takes
	fails error          // in place of an answer
	twice bool           // a step counts as sent again
	cut   bool           // a connection ends when its request was sent
	blind bool           // a renewal does not reach who waits
	anew  int            // steps that came for claims which were held, as far as was known

	failure error // that Listen returns
	mute    bool  // messages get lost
	heard   map[string]*Claim
	sub     chan struct{}
}

func newServer() *server {
	return &server{
		lines: map[string]*line.Line{}, until: map[string]time.Time{}, ttl: map[string]time.Duration{}, asked: map[string]int{},
		heard: map[string]*Claim{}, sub: make(chan struct{}),
	}
}

const ttl = 10 * time.Second

// open opens a session of a driver of its own. Whoever has ears is told.
func (f *server) open(t *testing.T, ears bool) *Session {
	t.Helper()
	c := Config{Store: f, Package: "test", Timeout: 4 * time.Second, MinTTL: time.Second, MaxName: 10}
	if ears {
		c.Notifier = f
	}
	d := New(c)
	t.Cleanup(d.cancel)
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*Session)
}

// request has f carried out after a while, and its answer come back after another one, if somebody
// still waits for it.
func request[T any](ctx context.Context, f *server, method string, carryOut func() (T, error)) (T, error) {
	end, _ := ctx.Deadline()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	f.mu.Lock()
	there, back, cut := f.there, f.back, f.cut
	f.mu.Unlock()
	var none T
	err := sessions.Aside(ctx, time.Hour, func(context.Context) error {
		go func() {
			time.Sleep(there)
			f.mu.Lock()
			f.asked[method]++
			v, err := carryOut()
			if f.fails != nil {
				err = f.fails
			}
			f.mu.Unlock()
			time.Sleep(back)
			answers <- answer{v, err}
		}()
		if cut {
			return errors.New("the connection has ended")
		}
		select {
		case a := <-answers:
			answers <- a
			return nil
		case <-time.After(time.Until(end)):
			return errors.New("no answer")
		}
	})
	if err != nil {
		return none, err
	}
	a := <-answers
	return a.value, a.err
}

func (f *server) now() time.Time { return time.Now().Add(f.skew) }

func (f *server) Open(ctx context.Context, spec driver.Spec) (int64, error) {
	return request(ctx, f, "open", func() (int64, error) {
		f.until[spec.ID], f.ttl[spec.ID] = f.now().Add(spec.TTL), spec.TTL
		return f.now().UnixMicro(), nil
	})
}

func (f *server) Step(ctx context.Context, s Step, _ time.Duration) (Answer, error) {
	method := "step"
	if s.Again && !s.Renew {
		method = "look"
	}
	return request(ctx, f, method, func() (Answer, error) { return f.step(s) })
}

// lineOf is a line without the dead.
func (f *server) lineOf(name string) *line.Line {
	l := f.lines[name]
	if l == nil {
		l = &line.Line{Name: name}
		f.lines[name] = l
	}
	l.Drop(func(c line.Claim) bool { return !f.until[c.Session].After(f.now()) })
	return l
}

func (f *server) step(s Step) (a Answer, err error) {
	a.Twice = f.twice
	l := f.lineOf(s.Name)
	if s.Held {
		f.anew++
	}
	if s.New != nil {
		switch {
		case f.now().UnixMicro() > s.Deadline:
			return Answer{State: Void, Clock: f.now().UnixMicro()}, nil
		case !f.until[s.Session].After(f.now()):
			return Answer{State: Over}, nil
		case s.Renew:
			f.until[s.Session] = f.now().Add(f.ttl[s.Session])
		}
	}
	_, a.Was = l.Leave(s.Old)
	there := s.New != nil && l.Find(s.New.ID) >= 0
	if s.New != nil && !there {
		mine := line.New(s.Session, *s.New)
		switch {
		case s.Again:
			a.State = Gone
		case l.Admits(mine) != nil:
			a.State = Misfit
		case s.New.Queue || l.Fits(mine):
			l.Join(mine, f.now())
			there = true
		}
	}
	f.settle(l, s.New)
	if there {
		a = f.place(l, s.New.ID, a)
	}
	return a, err
}

// settle lets in whoever is next, and tells them, except one who has it in an answer.
func (f *server) settle(l *line.Line, but *driver.Claim) {
	granted, err := l.Settle(f.now(), driver.Draw)
	if err != nil {
		panic(err)
	}
	for _, i := range granted {
		c := l.Claims[i]
		if h := f.heard[c.ID]; h != nil && !f.mute && (but == nil || but.ID != c.ID) {
			go h.Granted(c.Fence)
		}
	}
}

func (f *server) place(l *line.Line, id string, a Answer) Answer {
	i := l.Find(id)
	if i < 0 {
		a.State = Gone
		return a
	}
	c := l.Claims[i]
	a.Fence, a.Left = c.Fence, -1
	if a.State = Waiting; c.Held {
		a.State = Held
	} else if a.Head = l.Claims[i-1].Held; a.Head {
		a.Left = f.until[l.Claims[0].Session].Sub(f.now())
	}
	if i > 0 {
		a.Gate = l.Claims[i-1].ID
	}
	return a
}

func (f *server) Renew(ctx context.Context, session string, claims []Known, _ time.Duration) (int64, map[string]Answer, error) {
	changed := map[string]Answer{}
	clock, err := request(ctx, f, "renew", func() (int64, error) {
		if !f.until[session].After(f.now()) {
			return 0, driver.ErrSessionLost
		}
		f.until[session] = f.now().Add(f.ttl[session])
		for _, c := range claims {
			if f.blind && !c.Held {
				continue
			}
			if a := f.place(f.lineOf(c.Name), c.ID, Answer{}); a.State != Held || !c.Held {
				changed[c.ID] = a
			}
		}
		return f.now().UnixMicro(), nil
	})
	if err != nil {
		return 0, nil, err
	}
	return clock, changed, nil
}

func (f *server) Finish(ctx context.Context, session string, names []string) error {
	_, err := request(ctx, f, "finish", func() (bool, error) {
		for _, name := range names {
			l := f.lineOf(name)
			l.Drop(func(c line.Claim) bool { return c.Session == session })
			f.settle(l, nil)
		}
		delete(f.until, session)
		return true, nil
	})
	return err
}

func (f *server) Subscribe(c *Claim) Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard[c.ID] = c
	if f.failure != nil {
		return nil
	}
	return f.sub
}

func (f *server) Listen(context.Context, *Claim) (Subscription, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure != nil {
		return nil, f.failure
	}
	return f.sub, nil
}

func (f *server) Unsubscribe(c *Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.heard, c.ID)
}

// set changes what goes on under way.
func (f *server) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *server) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[method]
}

// nobody looks whether a line is empty, and nobody is heard for.
func (f *server) nobody(t *testing.T, name string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.lineOf(name).Claims); n != 0 {
		t.Errorf("%d claims stand in line %q, want none", n, name)
	}
	if n := len(f.heard); n != 0 {
		t.Errorf("%d claims are heard for, want none", n)
	}
}
