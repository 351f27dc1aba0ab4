//go:build linux || darwin

package worker

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Whoever gets in asks the store since when, and writes it down.
func TestWhoGetsInAsksSinceWhen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := OpenLog(filepath.Join(dir, "diary"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := &stormWorker{log: d, Job: Job{
		Store: "file:" + filepath.Join(dir, "locks"), TTL: 10 * time.Minute, Grace: time.Second, Names: []string{"a"}, Files: []string{filepath.Join(dir, "number")}, Guard: Fenced,
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
