package keepalive

import "github.com/interlock-go/interlock/internal/clock"

// Silence is what is known of a store that does not answer. It begins with the first request that
// goes unanswered, not with the last answer: from a store that nobody asks no answer is missing. It
// is guarded by the mutex of the line.
type Silence struct {
	asked int           // requests under way that must be answered
	err   error         // what the store failed with since its last answer
	since clock.Instant // while it lasts: when the first request was sent that is unanswered, or has failed since the last answer
}

// Err returns what the store failed with since its last answer, or nil.
func (s *Silence) Err() error { return s.err }

// Since returns when the silence began, or now where there is none.
func (s *Silence) Since(now clock.Instant) clock.Instant {
	if s.asked == 0 && s.err == nil {
		return now
	}
	return s.since
}

// Begin notes a request that is about to be sent.
func (s *Silence) Begin(now clock.Instant) {
	if s.asked == 0 && s.err == nil {
		s.since = now
	}
	s.asked++
}

// End notes that it is over, once what became of it is noted. One that its caller gave up says
// nothing of the store.
func (s *Silence) End() { s.asked-- }

// Failed notes that the store failed with err.
func (s *Silence) Failed(now clock.Instant, err error) {
	if s.asked == 0 && s.err == nil {
		s.since = now
	}
	s.err = err
}

// Answered notes that the store is there. It may be silent from now on for what is still under way.
func (s *Silence) Answered(now clock.Instant) { s.err, s.since = nil, now }
