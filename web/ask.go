package web

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
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
	l, err := b.looks.Line(ctx, name)
	if err == nil {
		b.pulse.took(time.Since(began))
	}
	return l, err
}

// pulse is how long a store took for its last answers about one name.
type pulse struct {
	turns chan struct{}

	mu    sync.Mutex
	times []time.Duration // the last ones, in a ring
	at    int
}

const pulseTimes = 256

func (p *pulse) took(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.times) < pulseTimes {
		p.times = append(p.times, d)
		return
	}
	p.times[p.at] = d
	p.at = (p.at + 1) % pulseTimes
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
