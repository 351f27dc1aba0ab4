package web

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/caught"
)

// mostLooks is how many looks at names may be under way in one store at the same time.
const mostLooks = 16

// ask looks at one name.
func (b *hub) ask(ctx context.Context, name string) (driver.Line, error) {
	if b.looks == nil {
		return driver.Line{Name: name}, errBlind
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	select {
	case b.pulse.turns <- struct{}{}:
		defer func() { <-b.pulse.turns }()
	case <-ctx.Done():
		return driver.Line{Name: name}, ctx.Err()
	}
	began := time.Now()
	l, err := b.lookAt(ctx, name)
	if !errors.Is(err, context.Canceled) { // whoever asked has gone, which says nothing of the store
		b.pulse.took(time.Since(began), err)
	}
	return l, err
}

// lookAt asks the store for a line.
func (b *hub) lookAt(ctx context.Context, name string) (l driver.Line, err error) {
	defer caught.Panic(&err, b.h.log, b.store.Name)
	return b.looks.Line(ctx, name)
}

// pulse is how a store answered when it was asked for one name.
type pulse struct {
	turns chan struct{}

	mu      sync.Mutex
	times   []time.Duration // of the last answers, in a ring
	at      int
	wrong   *failure // of the last request, nil if it was answered
	asked   time.Time
	probing chan struct{}
}

const pulseTimes = 256

// took notes how a request went. That the store refuses a name, or cannot look at one, is an answer.
func (p *pulse) took(d time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = time.Now()
	if err != nil && !errors.Is(err, driver.ErrRefused) && !isUnsupported(err) {
		since := p.asked
		if p.wrong != nil {
			since = p.wrong.since
		}
		p.wrong = &failure{since: since, err: err}
		return
	}
	p.wrong = nil
	if err != nil {
		return
	}
	if len(p.times) < pulseTimes {
		p.times = append(p.times, d)
		return
	}
	p.times[p.at] = d
	p.at = (p.at + 1) % pulseTimes
}

// last returns what was wrong when the store was asked last, and when that was.
func (p *pulse) last() (wrong *failure, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong, p.asked
}

// probe has f run unless it runs already, and returns what is closed at its end.
func (p *pulse) probe(f func(), begin func() bool) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.probing != nil {
		return p.probing
	}
	done := make(chan struct{})
	if !begin() {
		close(done)
		return done
	}
	p.probing = done
	go func() {
		f()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.probing = nil
		close(done)
	}()
	return done
}

// latency is how long a store took, in how many answers.
type latency struct {
	N   int   `json:"n"`
	P50 int64 `json:"p50_us"`
	P99 int64 `json:"p99_us"`
}

// read returns what is known, nil if nothing is.
func (p *pulse) read() *latency {
	p.mu.Lock()
	times := slices.Clone(p.times)
	p.mu.Unlock()
	if len(times) == 0 {
		return nil
	}
	slices.Sort(times)
	return &latency{len(times), times[len(times)/2].Microseconds(), times[len(times)*99/100].Microseconds()}
}
