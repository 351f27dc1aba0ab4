package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// process is a shop as the play sees it. One goroutine uses it.
type process struct {
	role    role
	url     string
	cmd     *exec.Cmd
	in      io.Closer
	words   *bytes.Buffer // of its standard error; read after done
	done    chan struct{} // closed when it has ended
	failure error         // how; read after done
	stopped bool
	inside  int // buyers
}

// comeUp is how long a shop may take to open; machines are slow now and then.
const comeUp = time.Minute

// startShop starts a shop and waits until it is open.
func startShop(ctx context.Context, cmd *exec.Cmd, index int, r role, j *journal) (*process, error) {
	p := &process{role: r, cmd: cmd, words: &bytes.Buffer{}, done: make(chan struct{})}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = p.words
	cmd.SysProcAttr = attributes()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("stage: start %s: %w", r.Name, err)
	}
	opened := make(chan string, 1)
	go func() {
		j.read(index, out, func(address string) { opened <- address })
		p.failure = cmd.Wait()
		close(p.done)
	}()
	if _, err := in.Write(append(text, '\n')); err != nil {
		p.kill()
		return nil, p.died()
	}
	timer := time.NewTimer(comeUp)
	defer timer.Stop()
	select {
	case address := <-opened:
		p.url = "http://" + address
		return p, nil
	case <-p.done:
		return nil, p.died()
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	case <-timer.C:
		p.kill()
		return nil, fmt.Errorf("stage: %s did not open within %v", r.Name, comeUp)
	}
}

// died says how a shop ended that should not have.
func (p *process) died() error {
	<-p.done
	return fmt.Errorf("stage: %s ended: %w: %s", p.role.Name, errors.Join(p.failure, io.ErrUnexpectedEOF), bytes.TrimSpace(p.words.Bytes()))
}

// stop stops the process, and returns when it stands still.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	p.stopped = true
	// Only the system knows when the last thread has stopped. Its end is not waited for here, but for cmd.Wait, which
	// looks for that alone.
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("stage: stop %s: %w", p.role.Name, err)
		case !status.Stopped():
			return fmt.Errorf("stage: %s ended when it was to stop", p.role.Name)
		default:
			return nil
		}
	}
}

func (p *process) resume() error {
	p.stopped = false
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// end lets the shop close, and makes sure that it has.
func (p *process) end() error {
	_ = p.in.Close()
	timer := time.NewTimer(comeUp)
	defer timer.Stop()
	select {
	case <-p.done:
		if p.failure != nil {
			return p.died()
		}
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("stage: %s did not close within %v", p.role.Name, comeUp)
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.in.Close()
}
