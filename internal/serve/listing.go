package serve

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The list for the metrics: how old it may be, at least, and as a multiple of how long the reading
// took; and the time for one reading.
const (
	listAge    = 10 * time.Second
	listFactor = 10
	listLimit  = 30 * time.Second
)

// listing is what the last list of all names said, for the metrics.
type listing struct {
	at    time.Time // when it was read; zero before the first
	took  time.Duration
	lines int
	holds, waits,
	broken int
	oldest time.Time // since when the claim waits that waits longest; zero where none does
}

// counted is a list for the metrics.
func counted(lines []driver.Line, began time.Time) listing {
	l := listing{at: began, took: time.Since(began), lines: len(lines)}
	for _, line := range lines {
		for _, c := range line.Claims {
			switch {
			case c.Broken:
				l.broken++
			case c.Held:
				l.holds++
			default:
				l.waits++
				if !c.Since.IsZero() && (l.oldest.IsZero() || c.Since.Before(l.oldest)) {
					l.oldest = c.Since
				}
			}
		}
	}
	return l
}

// listed returns what the last list said, after the list was read again where it is old. It waits
// for its own reading, until ctx ends, and not for that of another scrape.
func (s *store) listed(ctx context.Context) listing {
	if done := s.beginReading(ctx); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// beginReading reads the list in a goroutine if it is old, and returns the channel that is closed
// at the end; nil if nothing is read, or another reading is under way.
func (s *store) beginReading(ctx context.Context) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := time.Since(s.list.at) >= max(listAge, listFactor*s.list.took)
	if !old || s.reading || s.driver == nil {
		return nil
	}
	s.reading = true
	done := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listLimit)
		defer cancel()
		_, _ = s.Lines(ctx, "") // which keeps the numbers, and logs what went wrong
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reading = false
		close(done)
	}()
	return done
}
