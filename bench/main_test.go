package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary be its own worker, with adapters that the
// program does not have: one that lets everybody in, and one without memory.
func TestMain(m *testing.M) {
	adapters["none"] = adapter{open: func(context.Context, place) (locker, error) { return none{}, nil }}
	adapters["forgetful"] = adapter{open: func(context.Context, place) (locker, error) { return forgetful{newFIFO()}, nil }}
	if code, yes := beWorker(); yes {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

type none struct{}

func (n none) mutex(string) mutex { return n }

func (none) lock(context.Context) (func() error, error) {
	return func() error { return nil }, nil
}
func (none) close() error { return nil }

// Every contender of every row works and answers at least one of the row's
// figures.
func TestShort(t *testing.T) {
	for _, r := range allRows() {
		t.Run(r.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), []string{"-short", "-json", "-row", r.name}, &out, io.Discard); err != nil {
				t.Fatal(err)
			}
			var rec record
			if err := json.Unmarshal(out.Bytes(), &rec); err != nil {
				t.Fatal(err)
			}
			if len(rec.Rows) != 1 || len(rec.Rows[0].Contenders) != len(r.contenders) {
				t.Fatalf("not all contenders are in the record:\n%s", out.Bytes())
			}
			for _, c := range rec.Rows[0].Contenders {
				if len(c.Figures) == 0 {
					t.Errorf("%s answered none of %v", c.Name, r.metrics)
				}
			}
		})
	}
}

// Goals refer to metrics that the row prints.
func TestGoalsArePrinted(t *testing.T) {
	for _, r := range allRows() {
		for _, g := range r.goals {
			found := false
			for _, m := range r.metrics {
				found = found || m == g.metric
			}
			if !found {
				t.Errorf("%s: the goal for %s wants %q, which is no column", r.name, g.who, g.metric)
			}
		}
	}
}

// The check of exclusion finds a lock that excludes nobody, within a process
// and between processes.
func TestOverlapFailsTheRow(t *testing.T) {
	for _, c := range []contest{{"none", 1, 8}, {"none", 4, 1}} {
		var err error
		for try := 0; try < 20 && err == nil; try++ { // on a busy machine they may come one after the other by chance
			_, err = c.run(t.Context(), short)
		}
		if err == nil || !strings.Contains(err.Error(), "exclusion violated") {
			t.Errorf("%d × %d goroutines without a lock: %v", c.processes, c.goroutines, err)
		}
	}
}

// forgetful is a lock that excludes, and has the same token for everybody.
type forgetful struct{ *fifo }

func (f forgetful) mutex(string) mutex { return f }

func (f forgetful) lockToken(ctx context.Context) (uint64, func() error, error) {
	unlock, err := f.lock(ctx)
	return 1, unlock, err
}

func TestTokensThatDoNotGrowFailTheRow(t *testing.T) {
	_, err := contest{"forgetful", 1, 8}.run(t.Context(), short)
	if err == nil || !strings.Contains(err.Error(), "tokens went back") {
		t.Errorf("the same token for everybody: %v", err)
	}
}

func TestEarlyTakeoverFailsTheRow(t *testing.T) {
	_, err := takeover{"none"}.run(t.Context(), short)
	if err == nil || !strings.Contains(err.Error(), "exclusion violated") {
		t.Errorf("a waiter who did not wait: %v", err)
	}
}

func TestEarlyWaiterFailsTheRow(t *testing.T) {
	_, err := atRest{"none", 0, 1, 40}.run(t.Context(), short)
	if err == nil || !strings.Contains(err.Error(), "while the lock was held") {
		t.Errorf("waiters who did not wait: %v", err)
	}
}

func TestRowsByPattern(t *testing.T) {
	rows, err := choose("redlock-*")
	if err != nil || len(rows) != len(redlockRows()) {
		t.Errorf("redlock-*: %d rows, %v; want %d", len(rows), err, len(redlockRows()))
	}
}

func TestUnknownRow(t *testing.T) {
	err := run(t.Context(), []string{"-row", "nothing"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "embedded") {
		t.Errorf("the error does not list the rows: %v", err)
	}
}
