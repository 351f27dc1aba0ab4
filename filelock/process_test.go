//go:build linux || darwin

package filelock

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// soon bounds what does not wait for any time-to-live, on a machine that is busy.
const soon = 20 * time.Second

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// until looks again and again until ok answers true.
func until(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(d)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", d, what)
		}
		time.Sleep(time.Millisecond)
	}
}

func storeIn(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "store")
}

func acquire(t testing.TB, s driver.Session, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := s.Acquire(within(t, soon), c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func release(t testing.TB, s driver.Session, c driver.Claim) {
	t.Helper()
	if held, err := s.Release(within(t, soon), c); err != nil || !held {
		t.Fatalf("release: held %v, %v, want held true", held, err)
	}
}

const long = time.Minute // a TTL so long that nothing in a test waits for it

// Eight processes on one lock: nobody overlaps, tokens grow, turns alternate.
func TestContention_EightProcesses(t *testing.T) {
	b, path := newBoard(t)
	dir := storeIn(t)
	const n = 8
	var ws []*worker
	for i := range n {
		w := startWorker(t, task{Do: "contend", Dir: dir, Name: "n", Board: path, TTL: long, Slot: i + 1, Count: 8})
		w.hear(t, "ready")
		ws = append(ws, w)
	}
	for _, w := range ws {
		w.say(t, "go")
	}
	until(t, time.Minute, "5,000 entries", func() bool { return b.entered.Load() > 5000 })
	b.stop.Store(true)
	for _, w := range ws {
		if _, err := io.Copy(io.Discard, w.out); err != nil {
			t.Fatal(err)
		}
		if err := w.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	b.judge(t)
	if h, e := b.handoffs.Load(), b.entered.Load(); h < e*9/10 {
		t.Errorf("%d of %d entries were by another process than the one before: claims of all processes stand in line all the time", h, e)
	}
	d, _ := openAt(t, dir, long)
	if l, err := d.Lines(t.Context(), ""); err != nil || len(l) > 0 {
		t.Errorf("left behind: %+v, %v", l, err)
	}
}

// A thousand claims stand in one line, and each gets its turn in order.
func TestLine_AThousandClaims(t *testing.T) {
	dir := storeIn(t)
	_, s := openAt(t, dir, long)
	_, s2 := openAt(t, dir, long)
	sessions := []driver.Session{s, s2}
	var claims []driver.Claim
	for i := range 1000 {
		c := mutexOf("n")
		c.Note = fmt.Sprint(i)
		acquire(t, sessions[i%2], c)
		claims = append(claims, c)
	}
	var last uint64
	for i, c := range claims {
		g, err := hold(within(t, soon), sessions[i%2], c)
		if err != nil {
			t.Fatalf("claim %d: %v", i, err)
		}
		if g.Fence < last+driver.Stride {
			t.Fatalf("claim %d has token %d after %d", i, g.Fence, last)
		}
		last = g.Fence
		release(t, sessions[i%2], c)
	}
}

// A process that may open no more files goes on with those it has.
func TestFiles_NoMoreToBeHad(t *testing.T) {
	w := startWorker(t, task{Do: "starve", Dir: storeIn(t), Name: "n", TTL: long, Count: 100})
	w.hear(t, "done")
}

// Of many leases a renewal looks only at what others have changed, and misses nothing.
func TestRenew_OfManyLeases(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	other, s2 := openAt(t, dir, long)
	var claims []driver.Claim
	var fences []uint64
	for i := range 4 * lookAlways {
		c := mutexOf(fmt.Sprint("n", i))
		fences = append(fences, acquire(t, s, c).Fence)
		claims = append(claims, c)
	}
	waits := mutexOf("theirs")
	theirs := mutexOf("theirs")
	acquire(t, s2, theirs)
	acquire(t, s, waits)
	renew := func() driver.Renewal {
		t.Helper()
		r, err := s.Renew(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	renew()
	before := d.Stats().RecordReads
	for range lookEvery - 2 {
		renew()
	}
	if n := d.Stats().RecordReads - before; n > uint64(len(claims)) {
		t.Errorf("%d reads of records by %d renewals although nothing happened", n, lookEvery-2)
	}
	d.deaf.Store(true)
	if err := other.Break(t.Context(), claims[7].Name, driver.PublicID(claims[7].ID), fences[7], false); err != nil {
		t.Fatal(err)
	}
	release(t, s2, theirs)
	if r := renew(); len(r.Lost) != 1 || r.Lost[0].ID != claims[7].ID {
		t.Errorf("renewal after a break: %+v", r)
	}
	if g, err := s.Wait(within(t, time.Second), waits); err != nil || !g.Held {
		t.Errorf("granted unheard, after a renewal: held %v, %v", g.Held, err)
	}
	d.deaf.Store(false)
}

// A check of the line for the dead goes on while claims are released: each is seen to have been held.
func TestRelease_IsNotOvertakenByACheck(t *testing.T) {
	d, s := openAt(t, storeIn(t), long)
	k, err := d.names.get("n")
	if err != nil {
		t.Fatal(err)
	}
	defer d.names.put(k)
	for range 2000 {
		c := mutexOf("n")
		acquire(t, s, c)
		k.Check()
		release(t, s, c)
	}
}
