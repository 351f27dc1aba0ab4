// Package examinetest is for tests of what the doctor finds in a store.
package examinetest

import (
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
