package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

var errPortTaken = errors.New("the port is taken")

// process is one run of a server's program.
type process struct {
	cmd  *exec.Cmd
	log  *journal
	done chan struct{} // closed when the process has ended and is reaped
}

// launch is what a process is started with.
type launch struct {
	command   string
	args, env []string
	ready     string   // part of the line of the log that says that it is up
	as        *account // who it runs as; nil for whoever runs this
}

// startProcess starts the program and returns when its log shows the line that contains ready. The log is proof where a
// connection is none: on a port that somebody else took in between, another server would answer.
func startProcess(ctx context.Context, l launch) (*process, error) {
	name := l.command
	path, err := find(name)
	if err != nil {
		return nil, fmt.Errorf("servertest: %s is needed to run this: install it (on Debian: apt-get install %[1]s): %w", name, err)
	}
	p := &process{cmd: exec.Command(path, l.args...), log: newJournal(l.ready), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), l.env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = attributes(l.as)
	// A copy of the server that writes a file may outlive it, with the pipe of the log open.
	p.cmd.WaitDelay = leave

	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("servertest: cannot start %s: %w", path, err)
	}
	select {
	case <-p.log.ready:
		return p, nil
	case <-p.done:
		err = fmt.Errorf("servertest: %s ended at once:\n%s", name, p.log)
		if strings.Contains(strings.ToLower(p.log.String()), "address already in use") {
			err = fmt.Errorf("%w: %w", errPortTaken, err)
		}
		return nil, err
	case <-ctx.Done():
		_ = p.kill()
		<-p.done
		return nil, fmt.Errorf("servertest: %s was not up in time: %w\n%s", name, context.Cause(ctx), p.log)
	}
}

// run starts the process and waits for its end. On Linux the kernel kills the process when the thread that started it
// ends, and threads of the Go runtime may end before the program does: this one is kept until the process is gone.
func (p *process) run(started chan<- error) {
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

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends the signal; that the process is over is no error.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
