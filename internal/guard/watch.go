//go:build linux || darwin

package guard

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch handles the guard's messages until it has ended, and kills what it left behind.
func (g *Guard) watch() {
	messages := make(chan message)
	go func() {
		defer close(messages)
		for {
			m, err := g.link.receive()
			if err != nil {
				return
			}
			messages <- m
		}
	}()
	over := false
	for open := true; open; {
		select {
		case m, ok := <-messages:
			switch {
			case !ok:
				open = false
			case m.Op == opOver && !over:
				over, g.state = true, m.State
				close(g.over) // the guard's own end takes a moment, which nobody needs to wait for
			default:
				g.handle(m)
			}
		case <-g.halting:
			if g.Halted() {
				g.emit(Event{Kind: Halted})
			}
		case <-g.alarm.C:
			// The kill time is over, or the guard does not see that it should end: it is stopped.
			// The kernel kills the child with it. Its number is its own until it is waited for,
			// below.
			_ = unix.Kill(g.pid, unix.SIGKILL)
		}
	}
	g.finish(over)
	g.alarm.close()
	g.link.close()
	if !over {
		close(g.over)
	}
	close(g.gone)
}

func (g *Guard) handle(m message) {
	switch m.Op {
	case opStarted:
		g.child = m.Pids[0]
		g.began.Store(Now())
		g.answer(nil)
	case opFailed:
		g.answer(syscall.Errno(m.Errno))
	case opLate:
		g.answer(ErrLate)
	case opHalted: // perhaps by Ctrl-Z, which stops this process as well, once it is caught
		g.halting = time.NewTimer(signalDelay).C
	case opRemaining:
		g.emit(Event{Kind: Remaining, Pids: m.Pids})
	case opUnkillable:
		g.emit(Event{Kind: Unkillable, Pids: m.Pids})
	}
}

// emit calls Command.Event, if there is one.
func (g *Guard) emit(e Event) {
	g.mu.Lock()
	event := g.event
	g.mu.Unlock()
	if event != nil {
		event(e)
	}
}

func (g *Guard) answer(err error) {
	select {
	case g.started <- err:
	default: // Run has its answer
	}
}

// finish waits for the guard's end. When it ended before its work did, what was below it is below
// this process now, and is killed.
func (g *Guard) finish(over bool) {
	g.answer(ErrDied)
	_ = unix.Kill(g.pid, unix.SIGKILL) // it may have closed its end only
	g.waitFor(g.pid, 0)
	if over {
		return
	}
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	g.state = State{Stopped: true, GuardDied: !closed}
	if g.child != 0 && !g.terminal {
		_ = unix.Kill(-g.child, unix.SIGKILL) // the only way to it where there is no subreaper
	}
	g.below.kill(g.reap, nil, func(pids []int) { g.emit(Event{Kind: Unkillable, Pids: pids}) })
}

// reap collects the children of this process that have ended, and reports whether none is left.
func (g *Guard) reap() (empty bool) {
	empty = true
	for _, pid := range lookUp()(g.below.root) {
		if !g.below.spare[pid] && !g.waitFor(pid, unix.WNOHANG) {
			empty = false
		}
	}
	return empty
}

// waitFor waits for one child, and reports whether it has ended.
func (g *Guard) waitFor(pid, options int) bool {
	for {
		got, err := unix.Wait4(pid, nil, options, nil)
		if err != unix.EINTR {
			return err != nil || got == pid
		}
	}
}
