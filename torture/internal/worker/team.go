//go:build linux || darwin

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
)

// Team is the workers of one round, as their conductor sees them. One goroutine uses it.
type Team struct {
	dir    string
	self   string // this program's path
	jobs   []Job  // by slot; each life gets a seed and a log of its own
	procs  []*process
	Past   []*history.Life   // of lives that are over
	end    monotonic.Instant // of the round; 0 before it has begun
	Faults []history.Fault
	Errors []error

	Kills, Stops         int
	grants, losses, Cuts int64 // of lives that are over
}

// process is one life of a worker.
type process struct {
	slot, number int
	cmd          *exec.Cmd
	in           io.Closer
	log          *Log
	output       *output
	done         chan struct{} // closed when it has ended
	failure      error         // how; read after done
	stopped      bool
	killed       bool
}

// NewTeam starts a worker for each job. They begin when they are up.
func NewTeam(dir string, jobs []Job) (*Team, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("torture: find the own binary, to start workers: %w", err)
	}
	t := &Team{dir: dir, self: self, jobs: jobs, procs: make([]*process, len(jobs))}
	for slot := range jobs {
		if err := t.start(slot, 0); err != nil {
			t.Close()
			return nil, err
		}
	}
	return t, nil
}

// start begins a life.
func (t *Team) start(slot, number int) error {
	j := t.jobs[slot]
	j.Slot, j.Number = slot, number
	j.Seed += uint64(slot)<<32 + uint64(number)<<48
	j.Log = t.logOf(slot, number)
	d, err := OpenLog(j.Log)
	if err != nil {
		return err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	p := &process{slot: slot, number: number, log: d, output: &output{}, done: make(chan struct{})}
	p.cmd = exec.Command(t.self)
	p.cmd.Env = append(os.Environ(), Variable+"=1", "GOTRACEBACK=all")
	p.cmd.Stdout, p.cmd.Stderr = io.Discard, p.output
	p.cmd.SysProcAttr = attributes()
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("torture: start a worker: %w", err)
	}
	d.head.end.Store(int64(t.end))
	t.procs[slot] = p
	go func() {
		p.failure = p.cmd.Wait()
		close(p.done)
	}()
	if _, err := in.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("torture: a worker did not take its job: %w: %s", err, p.output)
	}
	return nil
}

func (t *Team) logOf(slot, number int) string {
	return filepath.Join(t.dir, fmt.Sprintf("log-%d-%d", slot, number))
}

// errNotMain is the error of a program whose workers run something else.
var errNotMain = errors.New("torture: a worker does not work: want torture.Main as the first thing in main")

// Await waits until all workers are up.
func (t *Team) Await(ctx context.Context) error {
	deadline := monotonic.Now().Add(comeUp)
	for _, p := range t.procs {
		for p.log.head.ready.Load() == 0 {
			select {
			case <-p.done:
				if p.failure == nil {
					return errNotMain
				}
				return fmt.Errorf("torture: a worker ended at once: %w: %s", p.failure, p.output)
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			if monotonic.Now() > deadline {
				return errNotMain
			}
			monotonic.Pause(2*time.Millisecond, ctx.Done())
		}
	}
	return nil
}

// Begin starts the work of all workers, until end.
func (t *Team) Begin(end monotonic.Instant) {
	t.end = end
	for _, p := range t.procs {
		p.log.head.end.Store(int64(end))
	}
}

func (t *Team) note(slot int, format string, args ...any) {
	t.Faults = append(t.Faults, history.Fault{At: monotonic.Now(), Slot: slot, What: fmt.Sprintf(format, args...)})
}

// running returns a process that runs, one of those that hold a lease if there is any; nil if none
// runs.
func (t *Team) running(r *rand.Rand) *process {
	var all, holders []*process
	for _, p := range t.procs {
		if p == nil || p.stopped || p.ended() {
			continue
		}
		all = append(all, p)
		if p.log.head.holding.Load() > 0 {
			holders = append(holders, p)
		}
	}
	if len(holders) > 0 {
		all = holders
	}
	if len(all) == 0 {
		return nil
	}
	return all[r.IntN(len(all))]
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// AllUp reports whether no worker has ended.
func (t *Team) AllUp() bool {
	for _, p := range t.procs {
		if p == nil || p.ended() {
			return false
		}
	}
	return true
}

func (t *Team) kill(p *process) {
	t.note(p.slot, "is killed")
	t.Kills++
	p.killed = true
	_ = p.cmd.Process.Kill()
	<-p.done
	t.collect(p)
}

// KillLast kills the worker of the last slot, if it runs.
func (t *Team) KillLast() {
	if p := t.procs[len(t.procs)-1]; p != nil && !p.ended() {
		t.kill(p)
	}
}

// Progress returns how many leases workers have had and lost so far.
func (t *Team) Progress() (grants, losses int64) {
	grants, losses = t.grants, t.losses
	for _, p := range t.procs {
		if p != nil {
			grants += p.log.head.grants.Load()
			losses += p.log.head.losses.Load()
		}
	}
	return grants, losses
}

func (t *Team) stop(p *process) {
	t.note(p.slot, "is stopped")
	t.Stops++
	p.stopped = p.cmd.Process.Signal(syscall.SIGSTOP) == nil
}

func (t *Team) resume(p *process) {
	if !p.stopped {
		return
	}
	p.stopped = false
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	t.note(p.slot, "is continued")
}

// collect reads the log of a process that has ended.
func (t *Team) collect(p *process) {
	life := p.log.Life(p.slot, p.number)
	life.Footprints = p.log.footprints(leftFile(t.logOf(p.slot, p.number)))
	t.Past = append(t.Past, life)
	t.grants += p.log.head.grants.Load()
	t.losses += p.log.head.losses.Load()
	t.Cuts += p.log.head.cuts.Load()
	t.procs[p.slot] = nil
	_ = p.log.Close()
	_ = p.in.Close()
}

// Finish waits for all workers to end by themselves. One that has not ended at the deadline is
// killed after it has printed its stacks.
func (t *Team) Finish(deadline monotonic.Instant) {
	for _, p := range t.procs {
		if p == nil {
			continue
		}
		t.resume(p)
		timer := time.NewTimer(max(deadline.Sub(monotonic.Now()), 0))
		select {
		case <-p.done:
			if p.failure != nil {
				t.Errors = append(t.Errors, fmt.Errorf("worker p%d.%d: %w: %s", p.slot, p.number, p.failure, p.output))
			}
		case <-timer.C:
			_ = p.cmd.Process.Signal(syscall.SIGQUIT)
			monotonic.Pause(5*time.Second, p.done)
			_ = p.cmd.Process.Kill()
			<-p.done
			t.Errors = append(t.Errors, fmt.Errorf("worker p%d.%d did not end:\n%s", p.slot, p.number, ownStacks(p.output.String())))
		}
		timer.Stop()
		t.collect(p)
	}
}

// Close kills all workers that have not ended.
func (t *Team) Close() {
	for _, p := range t.procs {
		if p == nil {
			continue
		}
		_ = p.cmd.Process.Kill()
		<-p.done
		t.collect(p)
	}
}
