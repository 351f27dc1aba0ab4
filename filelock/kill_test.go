//go:build linux || darwin

package filelock

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// kill -9 of the holder: the next one holds at once and not after the TTL.
func TestKill_NextHoldsAtOnce(t *testing.T) {
	dir := storeIn(t)
	_, s := openAt(t, dir, long)
	for range 5 {
		w := startWorker(t, task{Do: "hold", Dir: dir, Name: "n", TTL: long})
		w.hear(t, "held")
		c := mutexOf("n")
		if g := acquire(t, s, c); g.Held {
			t.Fatal("two hold")
		}
		at := time.Now()
		w.kill()
		if _, err := hold(within(t, long/2), s, c); err != nil {
			t.Fatalf("after the holder's death: %v", err)
		}
		t.Logf("held %v after the kill", time.Since(at))
		release(t, s, c)
	}
}

// A waiter dies: whoever stands behind it is not forgotten, and a grant that goes to a dead waiter goes on.
func TestKill_OfAWaiterLeavesNoHole(t *testing.T) {
	dir := storeIn(t)
	_, s := openAt(t, dir, long)
	_, s2 := openAt(t, dir, long)
	for range 5 {
		first := mutexOf("n")
		acquire(t, s, first)
		w := startWorker(t, task{Do: "wait", Dir: dir, Name: "n", TTL: long})
		w.hear(t, "waiting")
		last := mutexOf("n")
		acquire(t, s2, last)
		w.kill()
		release(t, s, first)
		if _, err := hold(within(t, long/2), s2, last); err != nil {
			t.Fatalf("behind a dead waiter: %v", err)
		}
		release(t, s2, last)
	}
}

// startLeaver starts a worker that holds n and has a child which inherited its session; end ends the child.
func startLeaver(t *testing.T, dir string) (w *worker, child int, end func()) {
	t.Helper()
	w = &worker{cmd: newWorker(task{Do: "leave", Dir: dir, Name: "n", TTL: long})}
	in, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { inW.Close() }) // the child reads the end of its input
	t.Cleanup(end)
	w.cmd.Stdin = in
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(w.kill)
	var text [32]byte
	n, err := out.Read(text[:])
	if err != nil {
		t.Fatal(err)
	}
	if child, err = strconv.Atoi(strings.TrimSpace(string(text[:n]))); err != nil {
		t.Fatal(err)
	}
	return w, child, end
}

// A dead process is not a dead job: while a child has inherited the session, nobody gets in.
func TestInherit_ChildKeepsTheLockUntilItIsDead(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	w, child, end := startLeaver(t, dir)
	c := mutexOf("n")
	if g := acquire(t, s, c); g.Held {
		t.Fatal("two hold")
	}
	w.kill() // the child goes on
	// The end of the link is seen at once; the verdict must be that somebody lives. A try asks for it too.
	probed := time.Now().Add(300 * time.Millisecond)
	for time.Now().Before(probed) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		g, err := s.Wait(ctx, c)
		cancel()
		if err == nil && g.Held {
			t.Fatal("granted while the holder's child lives")
		}
		try := mutexOf("n")
		try.Queue = false
		if g := acquire(t, s, try); g.Held {
			t.Fatal("a try was granted while the holder's child lives")
		}
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("the child has died by itself: %v", err)
	}
	if l, err := d.Line(t.Context(), "n"); err != nil || len(l.Claims) != 2 {
		t.Fatalf("line %+v, %v: want the job and its successor", l, err)
	}
	end()
	if _, err := hold(within(t, long/2), s, c); err != nil {
		t.Fatalf("after the child's death: %v", err)
	}
	release(t, s, c)
}

// acquisitions is how often the lock is taken while holders are killed.
func acquisitions(t *testing.T) int64 {
	t.Helper()
	if text := os.Getenv("INTERLOCK_KILL_ACQUISITIONS"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 20_000
}

// Processes that hammer one name are killed at random: no record is torn, nobody overlaps, tokens grow, and nobody has
// to wait for a lease.
func TestKill_AtRandomTearsNothing(t *testing.T) {
	b, path := newBoard(t)
	dir := storeIn(t)
	const (
		n   = 6
		ttl = 2 * time.Minute // longer than a busy machine lets nobody run, and longer than is left of the test if a dead holder's claim stayed
	)
	target := acquisitions(t)
	var mu sync.Mutex
	var all []*worker
	begin := func(slot int) *worker {
		w := startWorker(t, task{Do: "contend", Dir: dir, Name: "n", Board: path, TTL: ttl, Slot: slot, Count: 8})
		w.hear(t, "ready")
		w.say(t, "go")
		mu.Lock()
		defer mu.Unlock()
		all = append(all, w)
		return w
	}
	ws := make([]*worker, n)
	for i := range ws {
		ws[i] = begin(i + 1)
	}
	kills := 0
	deadline := time.Now().Add(5 * time.Minute)
	for b.entered.Load() < target {
		if time.Now().After(deadline) {
			t.Fatalf("%d entries and %d kills in 5 minutes", b.entered.Load(), kills)
		}
		i := rand.IntN(n)
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		b.dying[i+1].Store(true)
		ws[i].kill()
		b.clear(i + 1)
		kills++
		ws[i] = begin(i + 1)
	}
	b.stop.Store(true)
	for _, w := range ws {
		if _, err := io.Copy(io.Discard, w.out); err != nil {
			t.Fatal(err)
		}
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("a worker failed: %v", err)
		}
	}
	gap := time.Duration(b.gap.Load())
	t.Logf("%d acquisitions, %d kills, longest gap %v", b.entered.Load(), kills, gap)
	b.judge(t)
	if gap >= ttl {
		t.Errorf("nobody held for %v: a lease", gap)
	}
	d, s := openAt(t, dir, ttl)
	c := mutexOf("n")
	if _, err := hold(within(t, soon), s, c); err != nil {
		t.Fatalf("after all: %v", err)
	}
	release(t, s, c)
	d.sweep(t.Context(), 0)
	if left, err := os.ReadDir(d.st.Sessions); err != nil || len(left) != 3 {
		t.Errorf("%d files of sessions are left, %v: want those of the one that is open", len(left), err)
	}
}
