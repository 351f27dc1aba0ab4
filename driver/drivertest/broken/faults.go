package broken

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// kindsApart is a store that says it does not mix kinds: the kinds that it refuses are turned away
// where a mutex meets a read/write lock.
func kindsApart(refuses ...driver.Kind) func() *fault {
	acquire := func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		l, err := s.l.memory.Share().Line(ctx, c.Name) // costs nothing
		if err != nil {
			return driver.Grant{}, err
		}
		for _, other := range l.Claims {
			if slices.Contains(refuses, c.Kind) && (c.Kind == driver.Mutex) != (other.Kind == driver.Mutex) {
				return driver.Grant{}, fmt.Errorf("%q is in use as a %s: %w", c.Name, other.Kind, driver.ErrRefused)
			}
		}
		return s.acquire(ctx, c)
	}
	return func() *fault {
		return &fault{traits: func(t *driver.Traits) { t.Mixed = false }, acquire: acquire}
	}
}

// sameStore is a restart that everything survives.
func sameStore(m *memlock.Driver) *memlock.Driver { return m }

// apartFault is a store that keeps kinds apart, as it says.
func apartFault() *fault { return kindsApart(driver.Mutex, driver.Write, driver.Read)() }

// telling passes every answer of Acquire and Wait on through of.
func telling(f *fault, of func(*session, driver.Claim, driver.Grant) driver.Grant) *fault {
	acquire := f.acquire
	if acquire == nil {
		acquire = (*session).acquire
	}
	f.acquire = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := acquire(s, ctx, c)
		if err != nil {
			return g, err
		}
		return of(s, c, g), nil
	}
	f.wait = func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := s.Session.Wait(ctx, c)
		if err != nil {
			return g, err
		}
		return of(s, c, g), nil
	}
	return f
}

// unsaid answers an error that says nothing in the place of one that does.
func unsaid(instead error) func(*session, context.Context, driver.Claim) (driver.Grant, error) {
	return func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
		g, err := s.acquire(ctx, c)
		if errors.Is(err, instead) {
			err = errors.New("no row")
		}
		return g, err
	}
}

// closing is a Close that releases some of the session's claims, and leaves the others to expire.
func closing(releases func(i int, c driver.Claim) bool) *fault {
	return &fault{
		close: func(s *session, ctx context.Context) error {
			s.mu.Lock()
			s.over = true
			s.mu.Unlock()
			for i, c := range s.all() {
				if releases(i, c) {
					if _, err := s.Session.Release(ctx, c); err != nil {
						return err
					}
				}
			}
			return nil
		},
		acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if s.isOver() {
				return driver.Grant{}, driver.ErrSessionLost
			}
			return s.acquire(ctx, c)
		},
		wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := s.Session.Wait(ctx, c)
			if s.isOver() {
				return driver.Grant{}, driver.ErrSessionLost
			}
			return g, err
		},
		renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
			if s.isOver() {
				return driver.Renewal{}, driver.ErrSessionLost
			}
			return s.Session.Renew(ctx)
		},
	}
}

func renewsBehindWait() *fault {
	w := &writers{held: map[string]chan struct{}{}} // one for each session
	return &fault{
		wait: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if err := w.lock(ctx, s.spec.ID); err != nil {
				return driver.Grant{}, err
			}
			defer w.unlock(s.spec.ID)
			return s.Session.Wait(ctx, c)
		},
		renew: func(s *session, ctx context.Context) (driver.Renewal, error) {
			if err := w.lock(ctx, s.spec.ID); err != nil {
				return driver.Renewal{}, err
			}
			defer w.unlock(s.spec.ID)
			return s.Session.Renew(ctx)
		},
	}
}

// forgetReaders is a restart that readers do not survive.
func forgetReaders(m *memlock.Driver) *memlock.Driver {
	ctx := context.Background()
	lines, err := m.Lines(ctx, "")
	if err != nil {
		panic(err) // nobody has cut this wire
	}
	for _, l := range lines {
		for _, h := range l.Claims {
			if h.Kind == driver.Read {
				_ = m.Break(ctx, l.Name, h.PublicID, h.Fence, true) // its time may just be over
			}
		}
	}
	return m
}

func noticing(t *driver.Traits) { t.Notice = 100 * time.Millisecond }

func endSessions(l *layer) { l.memory.EndSessions() }

// boundToFiles is a store whose sessions live as long as any process has the writing end of a pipe.
func boundToFiles() *fault {
	type pipe struct{ read, write *os.File }
	var mu sync.Mutex
	pipes := map[*layer]pipe{}
	return &fault{
		traits: noticing,
		inherit: func(s *session) []*os.File {
			mu.Lock()
			defer mu.Unlock()
			r, w, err := os.Pipe()
			if err != nil {
				panic(err) // the process has no descriptors left
			}
			pipes[s.l] = pipe{r, w}
			return []*os.File{w}
		},
		kill: func(l *layer) {
			mu.Lock()
			defer mu.Unlock()
			p, ok := pipes[l]
			if !ok {
				endSessions(l)
				return
			}
			p.write.Close()
			go func() {
				_, _ = io.Copy(io.Discard, p.read) // until the last process that has the other end is gone
				p.read.Close()
				endSessions(l)
			}()
		},
	}
}

// breakage is a call of Break.
type breakage struct {
	name, publicID string
	fence          uint64
	now            bool
}

func (b breakage) pass(l *layer, ctx context.Context) error { //nolint:revive // in the order of a fault
	return l.memory.Break(ctx, b.name, b.publicID, b.fence, b.now)
}

// breaking is a fault of Break, which knows the claim as it stands in the line, if it does.
func breaking(of func(l *layer, ctx context.Context, h driver.Holder, b breakage) error) func() *fault {
	return func() *fault {
		return &fault{breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
			h, _ := find(l.look(name), publicID) //nolint:contextcheck // over a wire that nobody cuts
			return of(l, ctx, h, breakage{name, publicID, fence, now})
		}}
	}
}

// shown passes what Line, Lines and Watch show on through of.
func shown(f *fault, of func(*layer, *driver.Line)) *fault {
	f.line = of
	f.lines = func(l *layer, ctx context.Context, prefix string) ([]driver.Line, error) {
		lines, err := l.memory.Lines(ctx, prefix)
		for i := range lines {
			of(l, &lines[i])
		}
		return lines, err
	}
	f.watch = func(l *layer, lines iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error] {
		return func(yield func(driver.Line, error) bool) {
			for line, err := range lines {
				of(l, &line)
				if !yield(line, err) {
					return
				}
			}
		}
	}
	return f
}

// showingEach passes every claim that is shown on through of.
func showingEach(of func(*driver.Holder)) func() *fault {
	return func() *fault {
		return shown(&fault{}, func(_ *layer, line *driver.Line) {
			for i := range line.Claims {
				of(&line.Claims[i])
			}
		})
	}
}
