//go:build linux || darwin

package filelock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// crowd is a page on which goroutines of many processes write down what they hold. Whoever enters writes first and looks
// at the others then, so that of two who must not be inside together at least one sees it.
type crowd struct {
	stop    atomic.Bool
	entered atomic.Int64
	gaveUp  atomic.Int64
	faults  atomic.Int64
	fault   [3]atomic.Int64 // name, own and other's place of the first
	members [memberCount]member
}

type member struct {
	dying  atomic.Bool // the conductor is about to kill its process
	inside atomic.Int64
}

const (
	memberCount   = 64
	perProcess    = 4 // goroutines
	crowdNames    = 3
	permitLimit   = 5
	insideWriter  = 1 << 8
	insideReader  = 1 << 9
	insidePermits = 1 << 10 // plus the weight
)

// enter notes that the member me holds what of a name, and looks for others whom that excludes.
func (c *crowd) enter(me, name int, what int64) {
	c.members[me].inside.Store(c.entered.Add(1)<<32 | int64(name+1)<<16 | what)
	if what&insidePermits != 0 {
		if c.tooMany(name) {
			c.convict(name, me, -1)
		}
		return
	}
	for i := range c.members {
		other := c.members[i].inside.Load()
		if i != me && other>>16&0xffff == int64(name+1) && (what == insideWriter || other&insideWriter != 0) && !c.members[i].dying.Load() {
			c.convict(name, me, i)
		}
	}
}

// tooMany reports whether more permits of a name are inside than there are. One look proves nothing, because some leave
// and others enter while it is taken; those who are there in two looks, in the same visit, were there together.
func (c *crowd) tooMany(name int) bool {
	var first [memberCount]int64
	for i := range c.members {
		first[i] = c.members[i].inside.Load()
	}
	permits := int64(0)
	for i := range c.members {
		if seen := c.members[i].inside.Load(); seen == first[i] && seen>>16&0xffff == int64(name+1) && !c.members[i].dying.Load() {
			permits += seen & 0xff
		}
	}
	return permits > permitLimit
}

func (c *crowd) leave(me int) { c.members[me].inside.Store(0) }

func (c *crowd) convict(name, me, other int) {
	if c.faults.Add(1) == 1 {
		c.fault[0].Store(int64(name))
		c.fault[1].Store(int64(me))
		c.fault[2].Store(int64(other))
	}
}

// mingle takes read locks, write locks and permits at random, and gives up some while it waits.
func mingle(j task, in *bufio.Reader) error {
	c, err := sharePage[crowd](j.Board)
	if err != nil {
		return err
	}
	d, s, err := join(j)
	if err != nil {
		return err
	}
	go renewEvery(s, j.TTL/5)
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	var all sync.WaitGroup
	failures := make(chan error, perProcess)
	for i := range perProcess {
		all.Go(func() {
			for !c.stop.Load() {
				if err := c.visit(s, j.Slot*perProcess+i); err != nil && !errors.Is(err, driver.ErrSessionLost) {
					failures <- err
					return
				} else if err != nil {
					return // stopped for longer than its time
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failures:
		return err
	default:
	}
	return d.Close(context.Background())
}

// visit holds one claim once.
func (c *crowd) visit(s driver.Session, me int) error {
	name := rand.IntN(crowdNames)
	claim := mutexOf(fmt.Sprint("crowd-", name))
	what := int64(insideWriter)
	switch {
	case name == 0: // permits share no name with locks
		claim.Kind, claim.Limit, claim.Weight = driver.Permit, permitLimit, 1+rand.IntN(3)
		what = insidePermits | int64(claim.Weight)
	case rand.IntN(3) > 0:
		claim.Kind, claim.Weight = driver.Read, 1
		what = insideReader
	default:
		claim.Kind = driver.Write
	}
	claim.Queue = rand.IntN(8) > 0
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if rand.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(3000))*time.Microsecond)
	}
	defer cancel()
	g, err := s.Acquire(ctx, claim)
	for err == nil && !g.Held && claim.Queue {
		g, err = s.Wait(ctx, claim)
	}
	if err == nil && g.Held {
		// What is held without having been renewed of late is nothing to enter with; the session's time is long here
		// unless the process was stopped.
		if until, live := s.(*session).file.Until(); live && until > machine.BootClock()+int64(50*time.Millisecond) {
			c.enter(me, name, what)
			machine.Nap(100 * time.Microsecond) // time to be seen in
			c.leave(me)
		}
	} else {
		c.gaveUp.Add(1)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	if _, rerr := s.Release(context.Background(), claim); err == nil {
		err = rerr
	}
	return err
}

// Readers, writers and permits of many processes keep to the rule while processes are killed and stopped at random, and
// everybody goes on.
func TestKill_MixedKindsKeepToTheRule(t *testing.T) {
	path := storeIn(t) + "-crowd"
	c, err := sharePage[crowd](path)
	if err != nil {
		t.Fatal(err)
	}
	dir := storeIn(t)
	const n, ttl = 6, 2 * time.Second
	begin := func(slot int) *worker {
		for i := range perProcess {
			c.members[slot*perProcess+i].inside.Store(0)
			c.members[slot*perProcess+i].dying.Store(false)
		}
		w := startWorker(t, task{Do: "mingle", Dir: dir, Board: path, TTL: ttl, Slot: slot})
		w.hear(t, "ready")
		w.say(t, "go")
		return w
	}
	ws := make([]*worker, n)
	for i := range ws {
		ws[i] = begin(i)
	}
	const target = 10_000
	deadline := time.Now().Add(2 * time.Minute)
	for kills := 0; c.entered.Load() < target && c.faults.Load() == 0; kills++ {
		if time.Now().After(deadline) {
			t.Fatalf("%d entries in 2 minutes", c.entered.Load())
		}
		before := c.entered.Load()
		until(t, soon, "entries after a kill", func() bool { return c.entered.Load() > before+20 })
		i := rand.IntN(n)
		if kills%4 == 3 { // a stop that is too short to lose anything
			_ = ws[i].cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			_ = ws[i].cmd.Process.Signal(syscall.SIGCONT)
			continue
		}
		for m := range perProcess {
			c.members[i*perProcess+m].dying.Store(true)
		}
		ws[i].kill()
		ws[i] = begin(i)
	}
	c.stop.Store(true)
	if c.faults.Load() > 0 {
		t.Errorf("%d times the rule was broken, first on name %d by members %d and %d", c.faults.Load(), c.fault[0].Load(), c.fault[1].Load(), c.fault[2].Load())
	}
	for i, w := range ws {
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
	t.Logf("%d entries, %d given up", c.entered.Load(), c.gaveUp.Load())
	if c.gaveUp.Load() == 0 {
		t.Error("nobody has given up")
	}
	d, _ := openAt(t, dir, long)
	if l, err := d.Lines(t.Context(), ""); err != nil || len(l) > 0 {
		t.Errorf("left behind: %+v, %v", l, err)
	}
}
