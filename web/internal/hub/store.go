package hub

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/caught"
)

// How long a request may take.
const (
	LineLimit = 10 * time.Second // for one name
	ListLimit = 30 * time.Second // for the list
)

// mostLines is how many requests for one name may be under way at the same time.
const mostLines = 16

// probed is a name that nobody locks: to look at it shows whether the store answers, and how fast,
// and changes nothing.
const probed = "interlock/probe"

// Store asks one driver. Where the driver panics the caller gets an error, and the log has the
// rest.
type Store struct {
	name   string
	driver driver.Driver
	looks  driver.Inspector // nil: the store cannot be looked into
	life   *Life
	log    *slog.Logger
	lines  chan struct{} // has an element for each request for one name that is under way
	health health
}

func newStore(name string, d driver.Driver, life *Life, log *slog.Logger) *Store {
	looks, _ := d.(driver.Inspector)
	return &Store{name: name, driver: d, looks: looks, life: life, log: log, lines: make(chan struct{}, mostLines)}
}

// Blind reports whether the store cannot be looked into.
func (s *Store) Blind() bool { return s.looks == nil }

// Watches reports whether the store tells of changes; else it is asked each second.
func (s *Store) Watches() bool {
	_, ok := s.driver.(driver.Watcher)
	return ok
}

// Key returns where the store keeps a name.
func (s *Store) Key(name string) string {
	if k, ok := s.driver.(driver.Keyer); ok {
		return k.Key(name)
	}
	return name
}

// Traits returns what the store promises.
func (s *Store) Traits() (t driver.Traits, err error) {
	defer caught.Panic(&err, s.log, s.name)
	return s.driver.Traits(), nil
}

// Line returns the line of a name, within [LineLimit].
func (s *Store) Line(ctx context.Context, name string) (driver.Line, error) {
	if s.looks == nil {
		return driver.Line{Name: name}, errBlind
	}
	ctx, cancel := context.WithTimeout(ctx, LineLimit)
	defer cancel()
	select {
	case s.lines <- struct{}{}:
		defer func() { <-s.lines }()
	case <-ctx.Done():
		return driver.Line{Name: name}, ctx.Err()
	}
	began := time.Now()
	l, err := s.line(ctx, name)
	if !errors.Is(err, context.Canceled) { // the caller has gone, which says nothing of the store
		s.health.add(time.Since(began), err)
	}
	return l, err
}

func (s *Store) line(ctx context.Context, name string) (l driver.Line, err error) {
	defer caught.Panic(&err, s.log, s.name)
	return s.looks.Line(ctx, name)
}

// list returns the lines of all names.
func (s *Store) list(ctx context.Context) (lines []driver.Line, err error) {
	defer caught.Panic(&err, s.log, s.name)
	return s.looks.Lines(ctx, "")
}

// watch calls each with what the store tells of a name, until it tells no more. It returns an error
// that the store has not told: that it cannot watch, or a panic.
func (s *Store) watch(ctx context.Context, name string, each func(driver.Line, error)) (err error) {
	defer caught.Panic(&err, s.log, s.name)
	for l, err := range s.driver.(driver.Watcher).Watch(ctx, name) {
		if errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		each(l, err)
	}
	return nil
}

// Break breaks a claim, at once if now is true.
func (s *Store) Break(ctx context.Context, name, id string, fence uint64, now bool) (err error) {
	defer caught.Panic(&err, s.log, s.name)
	return s.looks.Break(ctx, name, id, fence, now)
}

// Check returns what is wrong with the store, nil if it answers, and whether that is known. It
// looks at a name, unless the store was asked for one within the last second, and waits for the
// answer until ctx ends.
func (s *Store) Check(ctx context.Context) (wrong *Failure, known bool) {
	wrong, at := s.health.last()
	if time.Since(at) < time.Second || s.looks == nil {
		return wrong, !at.IsZero()
	}
	done := s.health.probe(s.life, func() {
		_, _ = s.Line(s.life.Context(), probed) // which records how it went
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
	wrong, at = s.health.last()
	return wrong, !at.IsZero()
}

// Latency returns how long the store took in its last answers for one name, nil before the first.
func (s *Store) Latency() *Latency { return s.health.latency() }
