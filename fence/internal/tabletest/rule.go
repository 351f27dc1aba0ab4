package tabletest

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fence"
)

// Random claims and writes of rows, by the rule.
func rule(t *testing.T, d Database) {
	t.Helper()
	db, table := d.open(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		r, err := d.row(table, db, fmt.Sprintf("row %d", n))
		if err != nil {
			t.Fatal(err)
		}
		CheckRule(t, guardedRow{r, t})
	})
}

// guardedRow is a row as a Guarded.
type guardedRow struct {
	*row
	t *rapid.T
}

func (g guardedRow) Claim(token uint64) error        { return g.claim(token) }
func (g guardedRow) Write(token uint64, v int) error { return g.write(token, v) }

func (g guardedRow) Read() int {
	n, err := g.read()
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// A Guarded is one resource behind one of the guards.
type Guarded interface {
	Claim(token uint64) error
	Write(token uint64, value int) error
	Read() int
}

// CheckRule runs random claims and writes against g and against the rule as a reader would write it down.
func CheckRule(t *rapid.T, g Guarded) {
	highest, value := uint64(0), 0
	token := rapid.OneOf(
		rapid.Uint64Range(0, 6),
		rapid.Uint64Range(fence.Max-1, fence.Max+2),
		rapid.Uint64(),
	)
	for i := range rapid.IntRange(1, 12).Draw(t, "steps") {
		tok := token.Draw(t, "token")
		var want error
		switch {
		case tok == 0:
			want = fence.ErrNoToken
		case tok > 1<<63-1:
			want = fence.ErrRange
		case tok < highest:
			want = fence.ErrStale
		}
		var err error
		write := rapid.Bool().Draw(t, "write")
		if write {
			err = g.Write(tok, i+1)
		} else {
			err = g.Claim(tok)
		}
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Fatalf("token %d after %d: got %v, want %v", tok, highest, err, want)
		}
		var stale *fence.StaleError
		if errors.As(err, &stale) != errors.Is(want, fence.ErrStale) {
			t.Fatalf("token %d after %d: %v carries a StaleError: %v", tok, highest, err, stale != nil)
		}
		if stale != nil && (stale.Highest != highest || stale.Token != tok) {
			t.Fatalf("token %d after %d: the error says %d after %d", tok, highest, stale.Token, stale.Highest)
		}
		if want == nil {
			highest = tok
			if write {
				value = i + 1
			}
		}
		if got := g.Read(); got != value {
			t.Fatalf("after token %d: value %d, want %d", tok, got, value)
		}
	}
}
