package hub

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// healthTimes is how many answers the latency is of.
const healthTimes = 256

// health is how a store answered when it was asked for one name.
type health struct {
	mu      sync.Mutex
	times   []time.Duration // of the last answers, in a ring
	at      int             // the oldest of times, once they are all there
	wrong   *Failure        // of the last request, nil if it was answered
	asked   time.Time       // when the last request ended; zero before the first
	probing chan struct{}   // closed when the probe under way has ended; nil while there is none
}

// add records how a request went. That the store refuses a name, or cannot look at one, is an
// answer.
func (p *health) add(took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = time.Now()
	if err != nil && !errors.Is(err, driver.ErrRefused) && !errors.Is(err, errors.ErrUnsupported) {
		p.wrong = p.wrong.next(p.asked, err)
		return
	}
	p.wrong = nil
	if err != nil {
		return
	}
	if len(p.times) < healthTimes {
		p.times = append(p.times, took)
		return
	}
	p.times[p.at] = took
	p.at = (p.at + 1) % healthTimes
}

// last returns what was wrong when the store was asked last, and when that was.
func (p *health) last() (wrong *Failure, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong, p.asked
}

// probe calls f in a goroutine, unless it runs already or the life is over. The channel is closed
// when f has returned.
func (p *health) probe(life *Life, f func()) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.probing != nil {
		return p.probing
	}
	done := make(chan struct{})
	begun := life.Go(func() {
		f()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.probing = nil
		close(done)
	})
	if begun {
		p.probing = done
	} else {
		close(done)
	}
	return done
}

// Latency is how long a store took to answer for one name.
type Latency struct {
	N   int   `json:"n"` // answers
	P50 int64 `json:"p50_us"`
	P99 int64 `json:"p99_us"`
}

// latency returns that of the last answers, nil if there is none.
func (p *health) latency() *Latency {
	p.mu.Lock()
	times := slices.Clone(p.times)
	p.mu.Unlock()
	if len(times) == 0 {
		return nil
	}
	slices.Sort(times)
	return &Latency{len(times), times[len(times)/2].Microseconds(), times[len(times)*99/100].Microseconds()}
}
