package guard

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// Config is what a guard is started with.
type Config struct {
	// PauseGC stops the garbage collector, which must not run while a guard is forked; resume lets
	// it run again. It is nogc.Pause: package runtime/debug is initialized too late for a guard, so
	// this package does not import it.
	PauseGC func() (resume func())
}

// Event is something that happens between the start of a command and the end of its tree.
type Event struct {
	Kind EventKind
	Pids []int // the processes it speaks of
}

// EventKind says what an Event is about.
type EventKind int

// The kinds of events.
const (
	// Remaining: the command has ended, and these processes of its tree run on. Reported once.
	Remaining EventKind = 1 + iota
	// Unkillable: these processes belong to another user and cannot be killed. Reported once.
	Unkillable
	// Halted: the command is stopped at a terminal, and this process was not a moment before: see
	// [Guard.Halted].
	Halted
)

// Command is what to run.
type Command struct {
	Args     []string   // the program and its arguments; /bin/sh runs a script without #!
	Env      []string   // its whole environment, "name=value"; nil: that of this process
	Dir      string     // its directory; "": that of this process
	Inherit  []*os.File // the guard and the child keep these open, at free numbers from 50 on
	Deadline Deadline   // as by [Guard.SetDeadline], but before the start
	Least    time.Duration
	KillRest bool // kill what is left of the tree when the child has ended, instead of waiting for it
	OwnStdio bool // stdin and stdout are the command's alone: here they become /dev/null once it runs

	// Event, if not nil, is told what people should know while the command runs. Calls come one at
	// a time, from a goroutine of the guard's; it must not block.
	Event func(Event)
}

// State is how a command and everything below it ended.
type State struct {
	Code   int            // the child's exit code, where it exited
	Signal syscall.Signal // the signal that ended the child, or 0
	// Stopped is true when the tree was told to end: a deadline came, [Guard.Stop] was called, or
	// the guard died.
	Stopped bool
	// GuardDied is true when the guard did not live to report. Code and Signal then say nothing.
	GuardDied bool
}

// ExitCode returns the exit status as a shell shows it: the child's code, or 128 and the number of
// its signal.
func (s State) ExitCode() int {
	if s.Signal != 0 {
		return 128 + int(s.Signal)
	}
	return s.Code
}

// StartError is the answer to a command that cannot be executed.
type StartError struct {
	Name string
	Err  error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("guard: cannot execute %s: %v", e.Name, e.Err)
}

// Unwrap returns the reason, mostly a [syscall.Errno].
func (e *StartError) Unwrap() error { return e.Err }

// ExitCode returns what a shell exits with: 127 where the program was not found, else 126.
func (e *StartError) ExitCode() int {
	if os.IsNotExist(e.Err) {
		return 127
	}
	return 126
}
