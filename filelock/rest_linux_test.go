package filelock

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// lapse ends the time of all sessions that are not d's, and has d look at n.
func lapse(t *testing.T, d *Driver) {
	t.Helper()
	for _, f := range others(t, d) {
		f.Whole(func() { f.End().Store(1) })
	}
	if k := d.names.known(layout.HashOf("n")); k != nil {
		defer d.names.put(k)
		k.Check() // timers look at the clock every few seconds only
	}
}

// others returns the files of all sessions that are not d's.
func others(t *testing.T, d *Driver) (files []*layout.SessionFile) {
	t.Helper()
	keys, err := d.st.SessionKeys()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if d.local(key) != nil {
			continue
		}
		f, err := d.st.OpenSession(key)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.File.Close() })
		files = append(files, f)
	}
	return files
}

// restOf returns the processes that go on of former holders of a name, and how many holders these were.
func restOf(t *testing.T, d *Driver, name string) (pids []int, jobs int) {
	t.Helper()
	rest, err := d.Rest(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rest {
		pids = append(pids, r.PIDs...)
	}
	return pids, len(rest)
}

// take waits until s holds c.
func take(t *testing.T, s driver.Session, c driver.Claim) {
	t.Helper()
	if _, err := hold(within(t, soon), s, c); err != nil {
		t.Fatal(err)
	}
}

// C11: what has inherited a dead holder's session is found when the next one holds, as long as it lives, and nobody else:
// not those who waited behind it and have its file open, too.
func TestRest_IsWhatHasInherited(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	w, child, end := startLeaver(t, dir)
	waiter := startWorker(t, task{Do: "wait", Dir: dir, Name: "n", TTL: long})
	waiter.hear(t, "waiting")
	c := mutexOf("n")
	acquire(t, s, c)
	none := func(when string) {
		t.Helper()
		if pids, jobs := restOf(t, d, "n"); jobs != 0 {
			t.Errorf("%s: processes %v of %d former holders, want none", when, pids, jobs)
		}
	}
	none("while it holds")
	w.kill()
	none("while its time lasts")

	for _, f := range others(t, d) {
		if f.Text.Owner.PID == w.cmd.Process.Pid {
			f.Whole(func() { f.End().Store(1) })
		}
	}
	waiter.hear(t, "held")
	if pids, jobs := restOf(t, d, "n"); jobs != 1 || !slices.Equal(pids, []int{child}) {
		t.Errorf("processes %v of %d former holders, want %d, the only child of one", pids, jobs, child)
	}
	rest, err := d.Rest(t.Context(), "n")
	if err != nil || len(rest) != 1 || rest[0].Owner.PID != w.cmd.Process.Pid || rest[0].Lives {
		t.Errorf("%+v, %v: want it said that it was worker %d's, who is dead", rest, err, w.cmd.Process.Pid)
	}
	if pids, jobs := restOf(t, d, "another"); jobs != 0 {
		t.Errorf("under another name: processes %v", pids)
	}
	waiter.kill()
	take(t, s, c)
	if pids, _ := restOf(t, d, "n"); !slices.Equal(pids, []int{child}) {
		t.Errorf("processes %v of former holders, want %d: the second one who comes is told, too", pids, child)
	}
	end()
	until(t, soon, "nobody is left when the child has ended", func() bool {
		_, jobs := restOf(t, d, "n")
		return jobs == 0
	})
	release(t, s, c)
}

// An operator may not wait for the time of a dead holder. One who lives ends what he has started by himself.
func TestRest_OfABrokenClaim(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	w, child, _ := startLeaver(t, dir)
	c := mutexOf("n")
	acquire(t, s, c)
	l, err := d.Line(t.Context(), "n")
	if err != nil || len(l.Claims) != 2 {
		t.Fatalf("line %+v, %v", l, err)
	}
	if err := d.Break(t.Context(), "n", l.Claims[0].PublicID, l.Claims[0].Fence, true); err != nil {
		t.Fatal(err)
	}
	take(t, s, c)
	if pids, jobs := restOf(t, d, "n"); jobs != 0 {
		t.Errorf("processes %v of one who was told of his loss, want none", pids)
	}
	w.kill()
	if pids, _ := restOf(t, d, "n"); !slices.Equal(pids, []int{child}) {
		t.Errorf("processes %v of one who is dead by now, want his child, %d", pids, child)
	}
	release(t, s, c)
}

// A holder who was stopped past his time still has his session's lock. He is no job that outlives its holder.
func TestRest_IsNotTheHolderHimself(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	w := startWorker(t, task{Do: "hold", Dir: dir, Name: "n", TTL: long})
	w.hear(t, "held")
	w.stop(t)
	c := mutexOf("n")
	acquire(t, s, c)
	lapse(t, d)
	take(t, s, c)
	if pids, jobs := restOf(t, d, "n"); jobs != 0 {
		t.Errorf("processes %v of %d former holders: want none, the holder is stopped and has started nothing", pids, jobs)
	}
	if err := d.SignalRest(t.Context(), "n", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.stop(t) // and so it lives
	release(t, s, c)
}

// Who asks may be a part of the former job, and is no stranger to it then.
func TestRest_IsNotWhatThisProcessBelongsTo(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	c := mutexOf("n")
	g := acquire(t, s, c)
	heir := startWorker(t, task{Do: "rest", Dir: dir, Name: "n"}, s.(driver.Inheritor).Inherit()...)
	other, s2 := openAt(t, dir, long)
	next := mutexOf("n")
	acquire(t, s2, next)
	if err := d.Break(t.Context(), "n", driver.PublicID(c.ID), g.Fence, true); err != nil {
		t.Fatal(err)
	}
	take(t, s2, next)
	lapse(t, other)
	rest, err := other.Rest(t.Context(), "n")
	if err != nil || len(rest) != 1 || !rest[0].Lives || !slices.Equal(rest[0].PIDs, []int{heir.cmd.Process.Pid}) {
		t.Errorf("%+v, %v: want process %d of one who lives", rest, err, heir.cmd.Process.Pid)
	}
	heir.say(t, "look")
	heir.hear(t, "0 former holders")
	release(t, s2, next)
}

// A number may have passed on to a stranger since the processes were listed: only what has inherited the lock gets a signal.
func TestRest_SignalsNoStranger(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	w, _, _ := startLeaver(t, dir)
	c := mutexOf("n")
	acquire(t, s, c)
	waiter := startWorker(t, task{Do: "wait", Dir: dir, Name: "n", TTL: long}) // has the sessions' files open
	waiter.hear(t, "waiting")
	stranger := startWorker(t, task{Do: "sleep"})
	asked := 0
	for _, f := range others(t, d) {
		if f.Text.Owner.PID != w.cmd.Process.Pid {
			continue
		}
		for _, pid := range []int{waiter.cmd.Process.Pid, stranger.cmd.Process.Pid, w.cmd.Process.Pid} {
			asked++
			if err := f.SignalHeir(pid, syscall.SIGKILL); err != nil {
				t.Errorf("process %d: %v", pid, err)
			}
		}
	}
	if asked != 3 {
		t.Fatalf("%d signals, want 3", asked)
	}
	waiter.stop(t) // had it been killed, it could not be stopped
	stranger.stop(t)
	w.stop(t)

	w.kill()
	lapse(t, d)
	take(t, s, c)
	if err := d.SignalRest(t.Context(), "n", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "the heir ends by the signal", func() bool {
		_, jobs := restOf(t, d, "n")
		return jobs == 0
	})
	release(t, s, c)
}

func TestRest_EndsWithItsContext(t *testing.T) {
	d, _ := openAt(t, storeIn(t), long)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Rest(ctx, "n"); !errors.Is(err, context.Canceled) {
		t.Errorf("Rest: %v", err)
	}
	if err := d.SignalRest(ctx, "n", syscall.SIGTERM); !errors.Is(err, context.Canceled) {
		t.Errorf("SignalRest: %v", err)
	}
}
