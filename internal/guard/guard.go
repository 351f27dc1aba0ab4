//go:build linux || darwin

package guard

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signalDelay is how long after the child's start a signal that came before it may still arrive.
const signalDelay = 20 * time.Millisecond

var (
	// ErrLate is the answer to a command whose deadline leaves less than Command.Least. Nothing was
	// started.
	ErrLate = errors.New("guard: too little time is left to start the command")
	// ErrDied is the answer to a command that the guard did not live to start.
	ErrDied = errors.New("guard: the guard process has died")
)

// Guard is a guard process, seen from the process that started it. Its methods may be called at the
// same time.
//
// A process has at most one, and no other children that it starts later: if the guard dies, all
// that are below this process by then are taken for its tree. Children from before, as exec hands
// them on, are spared.
type Guard struct {
	link     *link
	pid      int
	terminal bool
	below    tree // what is below this process
	alarm    *alarm
	started  chan error    // one answer to Run
	over     chan struct{} // closed when nothing is left of the command
	gone     chan struct{} // closed when nothing is left of the guard either

	began   atomic.Int64     // when the guard reported that the command runs; 0: not yet
	halting <-chan time.Time // a moment after it was stopped; of watch

	mu       sync.Mutex
	deadline Deadline
	stopped  bool // the deadline moves no more
	closed   bool
	asked    int64 // when SIGTERM or SIGHUP came last
	event    func(Event)

	// Written before over is closed.
	child int
	state State
}

// Start starts a guard process. That takes some milliseconds, so it is done before it is known when
// there will be something to guard. The guard has no effect until [Guard.Run].
func Start(c Config) (*Guard, error) {
	if c.PauseGC == nil {
		return nil, errors.New("guard: want Config.PauseGC: Ctrl-Z while the guard is forked could hang this process")
	}
	if err := becomeSubreaper(); err != nil {
		return nil, fmt.Errorf("guard: become a subreaper: %w", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("guard: socketpair: %w", err)
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	defer func() { _ = unix.Close(pair[1]) }()
	link, err := newLink(pair[0])
	if err != nil {
		return nil, err
	}
	alarm, err := newAlarm()
	if err != nil {
		link.close()
		return nil, err
	}
	alone := childless()
	pid, err := forkGuard(pair[1], c.PauseGC)
	if err != nil {
		link.close()
		alarm.close()
		return nil, err
	}
	self, spare := os.Getpid(), map[int]bool{}
	if !alone {
		for _, other := range lookUp()(self) { // while the guard begins: it is the one child that is new
			spare[other] = other != pid
		}
	}
	g := &Guard{
		link:     link,
		pid:      pid,
		terminal: hasTerminal(),
		below:    tree{root: self, spare: spare},
		alarm:    alarm,
		started:  make(chan error, 1),
		over:     make(chan struct{}),
		gone:     make(chan struct{}),
	}
	go g.watch()
	return g, nil
}

// Run starts the command and returns when it runs. A [*StartError] says that it cannot be executed,
// ErrLate that its deadline is too near; the guard is then as before, and Run may be called again.
// It is called no more once a command runs.
func (g *Guard) Run(c Command) error {
	if len(c.Args) == 0 {
		return errors.New("guard: run: a command is needed")
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	if c.Dir != "" {
		if st, err := os.Stat(c.Dir); err != nil || !st.IsDir() {
			return fmt.Errorf("guard: run: %s is no directory", c.Dir)
		}
	}
	path, err := lookup(c.Args[0], c.Dir, pathOf(env))
	if err != nil {
		return err
	}
	m := message{
		Op:       opRun,
		Path:     []byte(path),
		Args:     toBytes(c.Args),
		Env:      toBytes(env),
		Dir:      []byte(c.Dir),
		Files:    len(c.Inherit),
		Least:    int64(c.Least),
		KillRest: c.KillRest,
		Deadline: c.Deadline,
	}
	if g.terminal {
		m.Group = syscall.Getpgrp()
	}
	fds := make([]int, len(c.Inherit))
	for i, f := range c.Inherit {
		fds[i] = int(f.Fd())
	}
	g.mu.Lock()
	g.event = c.Event
	g.mu.Unlock()
	g.move(c.Deadline)
	if err := g.link.send(m, fds...); err != nil {
		return fmt.Errorf("%w: %w", ErrDied, err)
	}
	if err := <-g.started; err != nil {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			return &StartError{Name: c.Args[0], Err: errno}
		}
		return err
	}
	if c.OwnStdio {
		replaceByNull(0, 1)
	}
	return nil
}

// SetDeadline moves the deadline, mostly after a renewal. It never blocks for long: to a guard that
// is stopped the message is worth nothing, and the deadline before applies. Once SIGTERM was sent
// it has no effect.
func (g *Guard) SetDeadline(d Deadline) {
	g.move(d)
	_ = g.link.send(message{Op: opDeadline, Deadline: d})
}

// move sets the time from which this process no longer waits for the guard.
func (g *Guard) move(d Deadline) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped || g.closed {
		return
	}
	g.deadline = d
	if d == (Deadline{}) {
		g.alarm.set(0)
		return
	}
	g.alarm.set(d.backstop())
}

// Stop ends the command now: SIGTERM to the whole tree at once, SIGKILL at d.Kill or at the kill
// time set before, whichever is earlier. A command that the guard has not been handed yet is not
// started: Run answers ErrLate, now and ever after.
func (g *Guard) Stop(d Deadline) {
	g.mu.Lock()
	g.stopped = true
	if g.deadline == (Deadline{}) || d.Kill < g.deadline.Kill {
		g.deadline = d
		g.alarm.set(d.backstop())
	}
	g.mu.Unlock()
	_ = g.link.send(message{Op: opStop, Deadline: d})
}

// Signal sends sig to the command: to its process group where that is its own and sig may mean all
// of it, else to the child; after the child's end to what is left of its tree. A signal that comes
// before the command is kept until it runs.
func (g *Guard) Signal(sig syscall.Signal) {
	_ = g.link.send(message{Op: opSignal, Signal: int(sig)})
}

// Forward passes on a signal that this process has caught, unless the child has got it as well:
// with a controlling terminal the child is in this process's group, and INT, QUIT, TSTP and WINCH
// are sent to groups. A Ctrl-C that comes before the child is there, or arrives just after, has
// missed it and is passed on; TSTP is not, for the SIGCONT that follows it would miss the child,
// too.
func (g *Guard) Forward(sig syscall.Signal) {
	switch sig {
	// TTIN and TTOU are about this process's own use of the terminal.
	case unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH, unix.SIGTTIN, unix.SIGTTOU:
		if g.terminal {
			return
		}
	case unix.SIGINT, unix.SIGQUIT:
		began := g.began.Load()
		if g.terminal && began != 0 && Now() > began+int64(signalDelay) {
			return
		}
	}
	if g.again(sig) {
		return
	}
	g.Signal(sig)
}

// again reports whether sig, which asks to end, comes a second time within a moment. With one `kill
// %1` a run inside a run gets it from the shell and, passed on, from the run around it; a person is
// slower.
func (g *Guard) again(sig syscall.Signal) bool {
	if !g.terminal || sig != unix.SIGTERM && sig != unix.SIGHUP {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	last, now := g.asked, Now()
	g.asked = now
	return last != 0 && now < last+int64(signalDelay)
}

// Continue continues a command that was stopped along with this process by Forward.
func (g *Guard) Continue() { g.Forward(unix.SIGCONT) }

// Halted reports whether the command, which runs, is stopped now at a terminal. A shell that ran it
// by itself would have the terminal back then, until fg: the answer is [StopSelf]. It is asked
// again just before that, since the command may have been continued meanwhile.
func (g *Guard) Halted() bool { return g.terminal && stopped(g.child) }

// Done is closed when nothing is left of the command.
func (g *Guard) Done() <-chan struct{} { return g.over }

// Wait returns when nothing is left of the command.
func (g *Guard) Wait() State {
	<-g.over
	return g.state
}

// Close ends the guard, and at once everything that it still guards. It returns when nothing is
// left of either.
func (g *Guard) Close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		g.link.endSending()
		g.alarm.set(Now() + int64(time.Second)) // a guard that is stopped does not notice
	}
	g.mu.Unlock()
	<-g.gone
}
