// Package process runs the program of a server: it starts the process, waits for the line of its
// log that says it is up, sends it signals, and ends it. On Linux the process dies with the one
// that started it, however that ends.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// ErrPortTaken is matched by the error of a process that ended because its port was taken.
var ErrPortTaken = errors.New("the port is taken")

// patience is how long a process may take to end by itself, and how long what it started may keep
// its log open after it.
const patience = 10 * time.Second

// Process is one run of a program. Start makes it; its methods may be called concurrently.
type Process struct {
	cmd  *exec.Cmd
	log  *journal
	done chan struct{} // closed when the process has ended and is reaped
}

// Launch is what a process is started with.
type Launch struct {
	Command   string
	Args, Env []string // Env besides that of this process
	Ready     string   // part of the line of the log that says it is up
	As        *Account // the user it runs as
}

// Start starts the program and returns when its log shows the line that contains l.Ready. The log
// is proof where a connection is none: on a port that somebody else took in between, another server
// would answer.
func Start(ctx context.Context, l Launch) (*Process, error) {
	path, err := Find(l.Command, l.Command)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(path, l.Args...), log: newJournal(l.Ready), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), l.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = attributes(l.As)
	// A copy of the server that writes a file may outlive it, with the pipe of the log open.
	p.cmd.WaitDelay = patience

	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("servertest: cannot start %s: %w", path, err)
	}
	select {
	case <-p.log.ready:
		return p, nil
	case <-p.done:
		err = fmt.Errorf("servertest: %s ended at once:\n%s", l.Command, p.log)
		if strings.Contains(strings.ToLower(p.log.String()), "address already in use") {
			err = fmt.Errorf("%w: %w", ErrPortTaken, err)
		}
		return nil, err
	case <-ctx.Done():
		_ = p.Kill()
		return nil, fmt.Errorf("servertest: %s was not up in time: %w\n%s", l.Command, context.Cause(ctx), p.log)
	}
}

// run starts the process and waits for its end. On Linux the kernel kills the process when the
// thread that started it ends, and threads of the Go runtime may end before the program does: this
// one is kept until the process is gone.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // how it ended is in its log
	close(p.done)
}

// Run runs a program to its end as the account, and returns what it wrote if it failed as part of
// the error. The Debian package is the one that brings the program.
func Run(ctx context.Context, as *Account, name, debian string, args ...string) error {
	path, err := Find(name, debian)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // as in run
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = attributes(as)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("servertest: %s: %w\n%s", name, err, out)
	}
	return nil
}

// Pid returns the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log returns what the process has written, cut at the front when that is much.
func (p *Process) Log() string { return p.log.String() }

// Over reports whether the process has ended.
func (p *Process) Over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// End sends the process a signal to end and waits until it has; a paused process is resumed first.
// A process that has not ended after ten seconds is killed, which is an error.
func (p *Process) End(sig syscall.Signal) error {
	if p.Over() {
		return nil
	}
	if err := errors.Join(p.signal(sig), p.Resume()); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("it did not end within %v of its signal and was killed:\n%s", patience, p.log), p.Kill())
	}
}

// Kill kills the process, paused or not, with its children and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.kill(); err != nil {
		return err
	}
	<-p.done
	return nil
}

// signal sends the signal; that the process is over is no error.
func (p *Process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
