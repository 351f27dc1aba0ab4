package web

import (
	"time"
)

// moment is a time as a page has it, and how long ago it was or is to come.
type moment struct {
	Machine string // for programs
	MS      int64  // since 1970
	Words   string
}

// ago returns a moment in the past, nil for the zero time.
func ago(t, now time.Time) *moment { return momentOf(t, now.Sub(t)) }

// ahead returns a moment to come, nil for the zero time.
func ahead(t, now time.Time) *moment { return momentOf(t, t.Sub(now)) }

// clockTime returns a moment that is shown by its time of day, nil for the zero time.
func clockTime(t time.Time) *moment {
	m := momentOf(t, 0)
	if m != nil {
		m.Words = t.UTC().Format("2006-01-02 15:04:05")
	}
	return m
}

func momentOf(t time.Time, d time.Duration) *moment {
	if t.IsZero() {
		return nil
	}
	return &moment{t.UTC().Format("2006-01-02T15:04:05.000Z"), t.UnixMilli(), spanWords(d)}
}

// ms returns the milliseconds since 1970, 0 for nil.
func (m *moment) ms() int64 {
	if m == nil {
		return 0
	}
	return m.MS
}
