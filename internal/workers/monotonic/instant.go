// Package monotonic is a clock that all processes of a machine share: CLOCK_MONOTONIC.
package monotonic

import (
	"cmp"
	"slices"
	"time"
)

// Instant is a time on the clock, in nanoseconds. 0 is never.
type Instant int64

// Add returns i+d.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns i-j.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Span is the time between two instants.
type Span struct{ From, To Instant }

// Union returns the time that the spans cover together.
func Union(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	var out []Span
	for _, s := range spans {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
		} else {
			out = append(out, s)
		}
	}
	return out
}
