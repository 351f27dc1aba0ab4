//go:build linux || darwin

package filelock

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
		t.Fatalf("release: held %v, %v", held, err)
	}
}

const long = time.Minute // a TTL so long that nothing in a test waits for it

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

// A dead process is not a dead job: while a child has inherited the session, nobody gets in.
func TestInherit_ChildKeepsTheLockUntilItIsDead(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	w := &worker{cmd: newWorker(task{Do: "leave", Dir: dir, Name: "n", TTL: long})}
	in, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer inW.Close()
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
	child, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		t.Fatal(err)
	}
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
	inW.Close() // ends the child
	if _, err := hold(within(t, long/2), s, c); err != nil {
		t.Fatalf("after the child's death: %v", err)
	}
	release(t, s, c)
}

// A stopped waiter does not hold up the releaser, however often he is told: a socket that takes no more drops messages.
func TestStop_OfAWaiterDoesNotBlockTheReleaser(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	w := startWorker(t, task{Do: "wait", Dir: dir, Name: "n", TTL: long})
	first := mutexOf("n")
	acquire(t, s, first)
	w.hear(t, "waiting")
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l, err := d.Line(t.Context(), "n")
	if err != nil || len(l.Claims) != 2 {
		t.Fatalf("line %+v, %v", l, err)
	}
	k, err := d.desk("n")
	if err != nil {
		t.Fatal(err)
	}
	defer d.leave(k)
	o, err := k.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key := sessionKey([]byte(o.line.Claims[1].Session))
	o.abort()
	o.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100_000 { // far more than a socket's buffer holds
			d.tell(key, k)
		}
		release(t, s, first)
	}()
	select {
	case <-done:
	case <-time.After(soon):
		t.Error("the releaser waits for a stopped waiter")
	}
	// When it goes on it knows, although the wake-up was dropped.
	if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-done
	w.hear(t, "held")
}

// A process that hammers the same name is stopped 200 times at random instructions, also while it has the record's
// lock: nobody else's renewal waits for it, and no lease is lost.
func TestStop_OfAStrangerHoldsNoRenewalUp(t *testing.T) {
	dir := storeIn(t)
	const ttl = 5 * time.Second
	_, s := openAt(t, dir, ttl)
	mine := mutexOf("mine")
	acquire(t, s, mine)
	waiting := mutexOf("n")
	w := startWorker(t, task{Do: "hammer", Dir: dir, Name: "n", TTL: long})
	w.hear(t, "ready")
	w2 := startWorker(t, task{Do: "hammer", Dir: dir, Name: "mine", TTL: long})
	w2.hear(t, "ready")
	acquire(t, s, waiting)
	longest := time.Duration(0)
	for i := range 200 {
		victim := w
		if i%2 == 1 {
			victim = w2
		}
		if err := victim.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		r, err := s.Renew(within(t, ttl))
		if err != nil || len(r.Lost) > 0 {
			t.Fatalf("stop %d: renew: %+v, %v", i, r, err)
		}
		longest = max(longest, time.Since(at))
		if err := victim.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond) // to another instruction
	}
	t.Logf("longest renewal %v", longest)
	if longest > ttl/3 {
		t.Errorf("a renewal took %v", longest)
	}
}

// The lock of a record is held by somebody who is stopped: a renewal of a session that stands in the same line does not
// wait for it, and the error of those who must wait says whom for.
func TestStop_InsideTheRecordsLock(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	mine := mutexOf("n")
	acquire(t, s, mine)
	f, err := d.st.openRecord(d.Key("n"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.unref()
	if err := f.lock(t.Context(), d.ctx, d.slow); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Renew(context.Background())
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("renew: %v", err)
		}
	case <-time.After(soon):
		t.Error("a renewal waits for the record's lock")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Release(ctx, mine)
	if err == nil || !strings.Contains(err.Error(), "has the record's lock") {
		t.Errorf("release: %v: want who has the record's lock", err)
	}
	f.unlock()
	release(t, s, mine)
}

// Eight processes on one lock: nobody overlaps, tokens grow, turns alternate.
func TestContention_EightProcesses(t *testing.T) {
	b, path := newBoard(t)
	dir := storeIn(t)
	const n = 8
	var ws []*worker
	for i := range n {
		w := startWorker(t, task{Do: "contend", Dir: dir, Name: "n", Board: path, TTL: long, Slot: i + 1})
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
		ttl = 10 * time.Second
	)
	target := acquisitions(t)
	var mu sync.Mutex
	var all []*worker
	begin := func(slot int) *worker {
		w := startWorker(t, task{Do: "contend", Dir: dir, Name: "n", Board: path, TTL: ttl, Slot: slot})
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
	if left, err := os.ReadDir(d.st.sessions); err != nil || len(left) != 2 {
		t.Errorf("%d files of sessions are left, %v: want those of the one that is open", len(left), err)
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
	if r := renew(); len(r.Lost) != 1 || r.Lost[0] != claims[7].ID {
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
	k, err := d.desk("n")
	if err != nil {
		t.Fatal(err)
	}
	defer d.leave(k)
	for range 2000 {
		c := mutexOf("n")
		acquire(t, s, c)
		k.check()
		release(t, s, c)
	}
}

// The driver is closed under calls that are under way, also under one that waits for a stopped stranger: they end, and
// nothing is touched that is closed.
func TestClose_WhileCallsAreUnderWay(t *testing.T) {
	for range 20 {
		dir := storeIn(t)
		d, err := New(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := openSession(t, d, long)
		var calls sync.WaitGroup
		for i := range 4 {
			calls.Go(func() {
				for {
					c := mutexOf(fmt.Sprint("n", i%2))
					if _, err := hold(t.Context(), s, c); err != nil {
						return
					}
					if _, err := s.Release(t.Context(), c); err != nil {
						return
					}
				}
			})
		}
		stuck := mutexOf("stuck")
		acquire(t, s, stuck)
		f, err := d.st.openRecord(d.Key("stuck"), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.lock(t.Context(), t.Context(), d.slow); err != nil {
			t.Fatal(err)
		}
		calls.Go(func() {
			if _, err := s.Release(t.Context(), stuck); err == nil {
				t.Error("released under a lock that another has")
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = d.Close(ctx)
		}()
		select {
		case <-closed:
		case <-time.After(soon):
			t.Fatal("Close waits for a stopped stranger")
		}
		calls.Wait()
		cancel()
		f.unref()
	}
}
