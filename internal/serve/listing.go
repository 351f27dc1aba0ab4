package serve

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
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

// listed returns the list, after it has been read anew where it is old and ctx leaves the time.
func (s *store) listed(ctx context.Context) listing {
	s.mu.Lock()
	old := time.Since(s.list.at) >= max(listAge, listFactor*s.list.took)
	if old && !s.reading && s.driver != nil {
		s.reading = true
		done := make(chan struct{})
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listLimit)
			defer cancel()
			_, _ = s.Lines(ctx, "") // which keeps it; what went wrong is known by seen
			s.mu.Lock()
			s.reading = false
			s.mu.Unlock()
			close(done)
		}()
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	return s.list
}
