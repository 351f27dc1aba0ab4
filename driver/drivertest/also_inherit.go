package drivertest

import (
	"os"
	"os/exec"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var inheritLaw = Law{
	Name: "Also_Inherit",
	Says: "A dead process is not yet a dead job: as long as a child has the files of Inherit, the store that sees deaths lets nobody " +
		"in before the claim's time is over; when the last process that has them is gone, within Notice.",
	try: tryInherit,
}

// alive is for how long the child outlives its parent.
const alive = 400 * time.Millisecond

func tryInherit(w *world) {
	a, b := w.unrenewed("A", w.long()), w.actor("B")
	in, ok := a.s.(driver.Inheritor)
	if !ok {
		w.without("what the liveness of a session is bound to", "it is no driver.Inheritor")
		return
	}
	k, ok := w.h.(Killer)
	if !ok {
		w.lacks("Killer", "whether a dead process is taken for a dead job")
		return
	}
	files := in.Inherit()
	if len(files) == 0 {
		w.fail("Inherit returned no files")
	}
	end := w.child(files)
	var behind []driver.Claim
	for _, k := range w.kinds() {
		behind = append(behind, b.queue(k.rival(a.held(k.own(w.name("inherit-"+k.String()))).Name)))
	}
	a.p.gone = true
	a.lapse()
	k.Kill(w.t, a.p.d)
	w.trace.add(time.Now(), "A", "is killed, and its child lives on")
	for from := time.Now(); time.Since(from) < alive; w.sleep(alive / 20) {
		for _, next := range behind {
			if b.state(next).Held {
				w.fail("%s was let in while a child of the dead holder had the session's files", w.trace.claim(next))
			}
		}
	}
	end()
	from := time.Now()
	w.trace.add(from, "child", "of A ends")
	if w.traits.Notice == 0 {
		return // then nothing but time lets the next in, and Law08_Expiry has seen to that
	}
	for _, next := range behind {
		b.await(next, w.traits.Notice+w.slack()+patience)
		if late := time.Since(from) - w.traits.Notice - w.slack(); late > 0 {
			w.fail("%s was let in %v after the last process that acted for the holder: want at most Notice, %v, and %v for a slow machine",
				w.trace.claim(next), time.Since(from), w.traits.Notice, w.slack())
		}
		b.letGo(next)
	}
}

// child starts a process that has files and does nothing until end is called.
func (w *world) child(files []*os.File) (end func()) {
	stdin, hold, err := os.Pipe()
	if err != nil {
		w.fail("no pipe for a child process: %v", err)
	}
	cmd := exec.Command("cat")
	cmd.Stdin, cmd.ExtraFiles = stdin, files
	err = cmd.Start()
	stdin.Close()
	if err != nil {
		hold.Close()
		w.fail("no child process: %v", err)
	}
	over := false
	end = func() {
		if over {
			return
		}
		over = true
		hold.Close()   // the child reads the end of its input
		_ = cmd.Wait() // how it ends does not matter
	}
	w.t.Cleanup(end)
	return end
}
