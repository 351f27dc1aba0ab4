package fence_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/fence/internal/tabletest"
)

// A seeded bug is meant to fail the properties, so what fails them then is not worth a file of rapid's.
func init() {
	if os.Getenv("INTERLOCK_BUG") != "" {
		if err := flag.Set("rapid.nofailfile", "true"); err != nil {
			panic(err)
		}
	}
}

type guardedInt struct {
	mark  fence.Mark
	value int
}

func (g *guardedInt) Claim(token uint64) error { return g.mark.Claim(token) }
func (g *guardedInt) Write(token uint64, v int) error {
	return g.mark.Do(token, func() error { g.value = v; return nil })
}
func (g *guardedInt) Read() int { return g.value }

// guards are one resource of every kind that this platform has.
func guards(t *testing.T) map[string]tabletest.Guarded {
	t.Helper()
	all := map[string]tabletest.Guarded{
		"mark": new(guardedInt),
	}
	addFile(t, all)
	return all
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestMark_Rule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { tabletest.CheckRule(t, new(guardedInt)) })
}

// Zero is refused by a guard that has seen nothing, where no comparison would refuse it.
func TestZero_Refused(t *testing.T) {
	if err := fence.Check("x", 0, 0); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("Check: %v, want ErrNoToken", err)
	}
	for name, g := range guards(t) {
		if err := g.Claim(0); !errors.Is(err, fence.ErrNoToken) {
			t.Errorf("%s: claim of 0: %v, want ErrNoToken", name, err)
		}
		if err := g.Write(0, 1); !errors.Is(err, fence.ErrNoToken) {
			t.Errorf("%s: write with 0: %v, want ErrNoToken", name, err)
		}
		if g.Read() != 0 {
			t.Errorf("%s: a write with 0 arrived", name)
		}
	}
}

// One holder writes many times: the second write has the token that the first made the highest.
func TestEqual_Passes(t *testing.T) {
	for name, g := range guards(t) {
		for i := range 3 {
			if err := errors.Join(g.Claim(7), g.Write(7, i+1)); err != nil {
				t.Errorf("%s: pass %d with an equal token: %v, want it accepted", name, i, err)
			}
		}
		if g.Read() != 3 {
			t.Errorf("%s: value %d, want 3", name, g.Read())
		}
	}
}

func TestStaleError_Says(t *testing.T) {
	err := fmt.Errorf("saving: %w", fence.Check("doc/7", 34, 33))
	if !errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrNoToken) {
		t.Errorf("%v: want it to match ErrStale only", err)
	}
	if want := `saving: fence: token 33 is stale: "doc/7" has seen 34 from a later holder`; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

// Many goroutines at one mark: the values written carry growing tokens, and a panic leaves the mark usable.
func TestMark_Concurrent(t *testing.T) {
	var mark fence.Mark
	var written []uint64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				token := uint64(i*8 + g + 1)
				err := mark.Do(token, func() error { written = append(written, token); return nil })
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := 1; i < len(written); i++ {
		if written[i] < written[i-1] {
			t.Fatalf("write %d carried %d after %d", i, written[i], written[i-1])
		}
	}
	if mark.Highest() != 4000 {
		t.Errorf("highest %d, want 4000", mark.Highest())
	}
	func() {
		defer func() { _ = recover() }()
		_ = mark.Do(5000, func() error { panic("in a write") })
	}()
	if err := mark.Claim(5000); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}
