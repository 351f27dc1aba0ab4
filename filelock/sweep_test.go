//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// The sweeper removes a record under the hands of somebody who has it open: his next operation is in the new file.
func TestUnlink_IsNoticedUnderTheLock(t *testing.T) {
	dir := storeIn(t)
	_, s1 := openAt(t, dir, long)
	d2, s2 := openAt(t, dir, long)
	c := mutexOf("n")
	acquire(t, s1, c)
	release(t, s1, c)
	d2.sweep(t.Context(), 0)
	if _, err := os.Stat(d2.Key("n")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the record is still there: %v", err)
	}
	c = mutexOf("n")
	if g := acquire(t, s1, c); !g.Held {
		t.Fatal("not held")
	}
	try := mutexOf("n")
	try.Queue = false
	if g := acquire(t, s2, try); g.Held {
		t.Fatal("two hold: one in a file without a name")
	}
	release(t, s1, c)
}

// The same as a race: two drivers and a sweeper that never rests.
func TestUnlink_Race(t *testing.T) {
	dir := storeIn(t)
	d, _ := openAt(t, dir, long)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			d.sweep(ctx, 0)
		}
	})
	var inside atomic.Int32
	var last atomic.Uint64
	var contestants sync.WaitGroup
	for range 4 {
		_, s := openAt(t, dir, long)
		contestants.Go(func() {
			for range 500 {
				c := mutexOf("n")
				g, err := hold(ctx, s, c)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold")
				}
				if last.Swap(g.Fence) >= g.Fence {
					t.Error("a token did not grow")
				}
				inside.Add(-1)
				if _, err := s.Release(ctx, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	contestants.Wait()
	stop()
	all.Wait()
}

func TestSweep_LeavesWhatIsUsed(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	held, idle := mutexOf("held"), mutexOf("idle")
	acquire(t, s, held)
	fence := acquire(t, s, idle).Fence
	release(t, s, idle)
	d.sweep(t.Context(), time.Hour)
	if _, err := os.Stat(d.Key("idle")); err != nil {
		t.Errorf("a record that was used a moment ago: %v", err)
	}
	w := startWorker(t, task{Do: "hold", Dir: dir, Name: "dead", TTL: long})
	w.hear(t, "held")
	w.kill()
	d.sweep(t.Context(), 0)
	if _, err := os.Stat(d.Key("held")); err != nil {
		t.Errorf("a held record: %v", err)
	}
	if _, err := os.Stat(d.Key("idle")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an idle record: %v", err)
	}
	if left, err := os.ReadDir(d.st.Sessions); err != nil || len(left) != 3 {
		t.Errorf("%d files of sessions, %v: want file, roll and socket of the living one", len(left), err)
	}
	// The clock is set back behind the removed record's tokens.
	sys := machine.Host
	sys.WallClock = func() time.Time { return time.Unix(1, 0) }
	back, err := newDriver(dir, nil, sys)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close(t.Context())
	if g := acquire(t, openSession(t, back, long), mutexOf("idle")); g.Fence < fence+driver.Stride {
		t.Errorf("token %d after %d", g.Fence, fence)
	}
}

// An operator does not wait for the sweeper: what stands and what was used since stays, and tokens go on.
func TestPrune(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	held := mutexOf("a/held")
	acquire(t, s, held)
	fences := map[string]uint64{}
	for _, name := range []string{"a/1", "a/2", "b"} {
		c := mutexOf(name)
		fences[name] = acquire(t, s, c).Fence
		release(t, s, c)
	}
	other, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(t.Context())
	prune := func(prefix string, idle time.Duration, want int) {
		t.Helper()
		if n, err := other.Prune(t.Context(), prefix, idle); err != nil || n != want {
			t.Errorf("prune %q idle for %v: %d, %v; want %d", prefix, idle, n, err, want)
		}
	}
	prune("", time.Hour, 0)
	prune("a/", 0, 2)
	for name, there := range map[string]bool{"a/held": true, "a/1": false, "a/2": false, "b": true} {
		if _, err := os.Stat(d.Key(name)); there != (err == nil) {
			t.Errorf("the record of %s: %v; want it there %v", name, err, there)
		}
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(d.Key("b"), old, old); err != nil {
		t.Fatal(err)
	}
	prune("", time.Hour, 1)
	for name, fence := range fences {
		if g := acquire(t, s, mutexOf(name)); g.Fence <= fence {
			t.Errorf("%s: token %d after %d", name, g.Fence, fence)
		}
	}
	if _, err := other.Prune(t.Context(), "", -time.Second); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("idle for less than nothing: %v, want ErrRefused", err)
	}
	release(t, s, held)
}
