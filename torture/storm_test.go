//go:build linux || darwin

package torture

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Storms with the default grace have a tenth of the TTL that the store asks for, if it asks for more than the usual one.
func TestGraceOfStorms(t *testing.T) {
	for tenth, want := range map[bool]time.Duration{false: time.Second, true: 300 * time.Millisecond} {
		c := Config{tenth: tenth}.fit(driver.Traits{MinTTL: 3 * time.Second})
		if c.TTL != 3*time.Second || c.Grace != want {
			t.Errorf("a tenth: %v; TTL %v, grace %v, want 3s and %v", tenth, c.TTL, c.Grace, want)
		}
	}
}

// What several masters say of when they granted is the time at which that was asked for, and nobody is convicted by it.
func TestMastersAreNotAskedSinceWhen(t *testing.T) {
	for store, want := range map[string]bool{"redlock://a,b,c": false, "redis://a": true, "postgres://a/b": true, "file:///a": true} {
		if got := dated(store); got != want {
			t.Errorf("dated(%q) = %v, want %v", store, got, want)
		}
	}
}

// Whoever gets in asks the store since when, and writes it down.
func TestWhoGetsInAsksSinceWhen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := openDiary(filepath.Join(dir, "diary"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	s := &stormer{diary: d, job: job{
		Store: fileStore(t), TTL: 10 * time.Minute, Grace: time.Second, Names: []string{"a"}, Files: []string{filepath.Join(dir, "number")}, Guard: fenced,
	}}
	client, store, closeBoth, err := s.open(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeBoth() }()
	s.client, s.inspector = client, store.(driver.Inspector)
	rec, err := d.ask(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Truncate(time.Microsecond)
	if err := s.visit(t.Context(), rec, 0, rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	if since := time.UnixMicro(rec.since.Load()); since.Before(before) || since.After(time.Now()) {
		t.Errorf("held since %v, as is written down; want a time after %v, when it asked", since, before)
	}
}
