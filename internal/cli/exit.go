package cli

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// The exit statuses, from sysexits(3) where it has one.
const (
	exitFindings = 1  // of doctor
	exitUsage    = 64 // EX_USAGE
	exitData     = 65 // EX_DATAERR
	exitStore    = 69 // EX_UNAVAILABLE
	exitInternal = 70 // EX_SOFTWARE
	exitSystem   = 71 // EX_OSERR
	exitOutput   = 74 // EX_IOERR
	exitHeld     = 75 // EX_TEMPFAIL
	exitLost     = 76
)

// statuses are the exit statuses as people read them, in help and on the manual's page.
var statuses = []struct{ status, means string }{
	{"0", "done"},
	{"1", "doctor has found what breaks a promise of the store"},
	{"64", "the command line, the name or the store's URL is wrong"},
	{"65", "what stands in the store is no lock, or is damaged"},
	{"69", "the store cannot be used"},
	{"70", "anything else"},
	{"71", "no file descriptor was left for it (ulimit -n)"},
	{"74", "the answer cannot be written: the disk is full, or nobody reads it"},
	{"75", "the lock was not acquired: another has it, or the wait was broken"},
	{"76", "the lock was lost, and the command was stopped"},
	{"126", "the command cannot be executed"},
	{"127", "the command was not found"},
	{"128+N", "the command was ended by signal N"},
}

// ownStatus is what statuses has no row for.
const ownStatus = "Otherwise run and elect return the status of their command."

// statusHelp is the table of exit statuses for help, where a line that is indented stays as it is.
func statusHelp() string {
	var b strings.Builder
	b.WriteString("Exit status:\n\n")
	for _, s := range statuses {
		fmt.Fprintf(&b, "  %-6s %s\n", s.status, s.means)
	}
	return b.String() + "\n" + ownStatus
}

// exitError is an error that knows its exit status.
type exitError struct {
	status int
	err    error // nil when everything has been said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// commandError is how the command of run ended, if not well: its status is passed on as it is.
type commandError struct {
	status int
	by     syscall.Signal // that ended it, or 0
	err    error          // nil when the command has said everything itself
}

func (e *commandError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("the command ended with status %d", e.status)
	}
	return e.err.Error()
}

func (e *commandError) Unwrap() error { return e.err }

// usage returns an error of the command line.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// storeError returns an error of the store with its exit status: the URL is wrong, what stands
// there is damaged, the store never has such a lock, or it cannot be used.
func storeError(err error) error {
	switch {
	case errors.As(err, new(*driver.URLError)): // no such store can be there
		return &exitError{exitUsage, err}
	case errors.Is(err, driver.ErrBadData):
		return &exitError{exitData, err}
	case errors.Is(err, driver.ErrName): // is never given, so it is not to be asked for again
		return &exitError{exitUsage, err}
	}
	return &exitError{exitStore, err}
}

// starved returns err with what is short, where no file descriptor was left: such an error says
// nothing of the store or of the lock.
func starved(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		text := "out of file descriptors"
		var limit syscall.Rlimit
		// Go has raised the soft limit to the hard one.
		if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
			text += fmt.Sprintf(": this process may have %d: want a higher limit, as 64 (ulimit -n, LimitNOFILE= in a unit)", limit.Cur)
		}
		return &exitError{exitSystem, fmt.Errorf("%s: %w", text, err)}
	case errors.Is(err, syscall.ENFILE):
		return &exitError{exitSystem, fmt.Errorf("this machine is out of file descriptors: want a higher limit (sysctl fs.file-max): %w", err)}
	}
	return err
}

// statusOf returns the exit status for an error.
func statusOf(err error) int {
	var e *exitError
	var command *commandError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &command):
		return command.status
	case errors.As(err, &e):
		return e.status
	case errors.Is(err, interlock.ErrLost):
		return exitLost
	case errors.Is(err, interlock.ErrHeld):
		return exitHeld
	case errors.Is(err, driver.ErrBadData), errors.Is(err, driver.ErrRefused), errors.Is(err, interlock.ErrUnavailable), errors.Is(err, errors.ErrUnsupported):
		return statusOf(storeError(err))
	}
	return exitInternal
}
