package serve

import (
	"context"
	"errors"
	"time"
)

// A probe looks at a name that nobody locks. An answer that is younger than probeAge spares it.
const (
	probeAge   = time.Second
	probeLimit = 2 * time.Second
	probeName  = "interlock serve: is the store there?"
)

// ready reports whether the store answers. Callers at the same time share one probe.
func (s *store) ready(ctx context.Context) bool {
	if probing := s.beginProbe(ctx); probing != nil {
		select {
		case <-probing:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.driver != nil && s.err == nil && time.Since(s.answered) < probeAge+probeLimit
}

// beginProbe begins a probe, if none is under way, and returns the channel that is closed at its
// end; nil if the store is not open, or has just answered.
func (s *store) beginProbe(ctx context.Context) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.driver == nil || s.err == nil && time.Since(s.answered) < probeAge {
		return nil
	}
	if s.probing == nil {
		s.probing = make(chan struct{})
		go s.probe(context.WithoutCancel(ctx), s.probing)
	}
	return s.probing
}

// probe looks at a name. A store that does not return in time is down, whenever it returns.
func (s *store) probe(ctx context.Context, over chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	_, err := s.Line(ctx, probeName)
	if errors.Is(err, errors.ErrUnsupported) { // it is open, and there is nothing else to ask it
		s.seen(ctx, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probing = nil
	close(over)
}
