// Package examinetest is for tests of what the doctor finds in a store.
package examinetest

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// Levels are the levels of checks by their titles; what is not among them is well.
type Levels map[string]driver.Level

// The levels, as a table of tests has them.
const (
	Skip = driver.LevelSkip
	Warn = driver.LevelWarn
	Bad  = driver.LevelBad
)

// Finds asks the doctor, who must find that and nothing else, and say of it why it matters and how to mend it.
func Finds(t *testing.T, what string, c *interlock.Client, want Levels, o ...interlock.DoctorOption) *interlock.Report {
	t.Helper()
	r, err := c.Doctor(t.Context(), o...)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	got, all := Levels{}, ""
	for _, f := range r.Findings {
		if f.Level > driver.LevelOK {
			got[f.Title] = max(got[f.Title], f.Level)
			all += fmt.Sprintf("\n%+v", f)
		}
		if f.Title == "" || f.Seen == "" || (f.Level > driver.LevelSkip) != (f.Why != "" && f.Mend != "") {
			t.Errorf("%s: %+v: want what was seen, and where something is wrong why it matters and how to mend it", what, f)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v:%s", what, got, want, all)
	}
	return r
}

// Refused opens a store, which its server must refuse with that finding: by as much of an error as the doctor's exit status hangs on.
func Refused(t *testing.T, what, url string, want Levels) driver.Finding {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), url)
	if err == nil {
		_ = d.Close(t.Context())
		t.Fatalf("%s: it was opened, want %v", what, want)
	}
	var found *driver.FindingError
	if !errors.As(err, &found) {
		t.Fatalf("%s: %v: want an error with a finding %v", what, err, want)
	}
	f := found.Finding
	if got := (Levels{f.Title: f.Level}); !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v: %+v, %v", what, got, want, f, err)
	}
	if f.Seen == "" || f.Why == "" || f.Mend == "" {
		t.Errorf("%s: %+v: want what was seen, why it matters and how to mend it", what, f)
	}
	return f
}
