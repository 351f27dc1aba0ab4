//go:build linux || darwin

package torture

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
)

// team is the workers of one round, as their conductor sees them. One goroutine uses it.
type team struct {
	dir    string
	self   string
	jobs   []job // by slot; each life gets a seed and a diary of its own
	procs  []*process
	past   []*life // of lives that are over
	end    instant // of the round; 0 before it has begun
	faults []fault
	errors []error

	kills, stops         int
	grants, losses, cuts int64 // of lives that are over
}

// process is one life of a worker.
type process struct {
	slot, number int
	cmd          *exec.Cmd
	in           io.Closer
	diary        *diary
	output       *transcript
	done         chan struct{} // closed when it has ended
	failure      error         // how; read after done
	stopped      bool
	killed       bool
}

// newTeam starts a worker for each job. They begin when they are up.
func newTeam(dir string, jobs []job) (*team, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("torture: find the own binary, to start workers: %w", err)
	}
	t := &team{dir: dir, self: self, jobs: jobs, procs: make([]*process, len(jobs))}
	for slot := range jobs {
		if err := t.start(slot, 0); err != nil {
			t.disband()
			return nil, err
		}
	}
	return t, nil
}

// start begins a life.
func (t *team) start(slot, number int) error {
	j := t.jobs[slot]
	j.Slot, j.Number = slot, number
	j.Seed += uint64(slot)<<32 + uint64(number)<<48
	j.Diary = t.diaryOf(slot, number)
	d, err := openDiary(j.Diary)
	if err != nil {
		return err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	p := &process{slot: slot, number: number, diary: d, output: &transcript{}, done: make(chan struct{})}
	p.cmd = exec.Command(t.self)
	p.cmd.Env = append(os.Environ(), workerVariable+"=1", "GOTRACEBACK=all")
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

func (t *team) diaryOf(slot, number int) string {
	return filepath.Join(t.dir, fmt.Sprintf("diary-%d-%d", slot, number))
}

// leftFile is where a worker says what it has left that should be gone.
func leftFile(diary string) string { return diary + "-left" }

// errNotMain is what a program hears whose workers run something else.
var errNotMain = errors.New("torture: a worker does not work: want torture.Main as the first thing in main")

// comeUp is how long a worker may take until it is ready; machines that run tests are slow now and then.
const comeUp = time.Minute

// await waits until all workers are up.
func (t *team) await(ctx context.Context) error {
	deadline := now().add(comeUp)
	for _, p := range t.procs {
		for p.diary.head.ready.Load() == 0 {
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
			if now() > deadline {
				return errNotMain
			}
			pause(2*time.Millisecond, ctx.Done())
		}
	}
	return nil
}

// begin lets all workers go, until end.
func (t *team) begin(end instant) {
	t.end = end
	for _, p := range t.procs {
		p.diary.head.end.Store(int64(end))
	}
}

func (t *team) note(slot int, format string, args ...any) {
	t.faults = append(t.faults, fault{at: now(), slot: slot, what: fmt.Sprintf(format, args...)})
}

// running returns a process that runs, one of those that hold a lease if there is any; nil if none runs.
func (t *team) running(r *rand.Rand) *process {
	var all, holders []*process
	for _, p := range t.procs {
		if p == nil || p.stopped || p.ended() {
			continue
		}
		all = append(all, p)
		if p.diary.head.holding.Load() > 0 {
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

// up reports whether no worker has ended.
func (t *team) up() bool {
	for _, p := range t.procs {
		if p == nil || p.ended() {
			return false
		}
	}
	return true
}

func (t *team) kill(p *process) {
	t.note(p.slot, "is killed")
	t.kills++
	p.killed = true
	_ = p.cmd.Process.Kill()
	<-p.done
	t.bury(p)
}

func (t *team) stop(p *process) {
	t.note(p.slot, "is stopped")
	t.stops++
	p.stopped = p.cmd.Process.Signal(syscall.SIGSTOP) == nil
}

func (t *team) resume(p *process) {
	if !p.stopped {
		return
	}
	p.stopped = false
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	t.note(p.slot, "is continued")
}

// bury keeps what a process wrote down, after its end.
func (t *team) bury(p *process) {
	life := p.diary.life(p.slot, p.number)
	life.leavings = p.diary.leavings(leftFile(t.diaryOf(p.slot, p.number)))
	t.past = append(t.past, life)
	t.grants += p.diary.head.grants.Load()
	t.losses += p.diary.head.losses.Load()
	t.cuts += p.diary.head.cuts.Load()
	t.procs[p.slot] = nil
	_ = p.diary.close()
	_ = p.in.Close()
}

// finish waits for all workers to end by themselves. One that has not at the deadline is asked for its stacks.
func (t *team) finish(deadline instant) {
	for _, p := range t.procs {
		if p == nil {
			continue
		}
		t.resume(p)
		timer := time.NewTimer(max(deadline.sub(now()), 0))
		select {
		case <-p.done:
			if p.failure != nil {
				t.errors = append(t.errors, fmt.Errorf("worker p%d.%d: %w: %s", p.slot, p.number, p.failure, p.output))
			}
		case <-timer.C:
			_ = p.cmd.Process.Signal(syscall.SIGQUIT)
			pause(5*time.Second, p.done)
			_ = p.cmd.Process.Kill()
			<-p.done
			t.errors = append(t.errors, fmt.Errorf("worker p%d.%d did not end:\n%s", p.slot, p.number, ownStacks(p.output.String())))
		}
		timer.Stop()
		t.bury(p)
	}
}

// disband ends everything.
func (t *team) disband() {
	for _, p := range t.procs {
		if p == nil {
			continue
		}
		_ = p.cmd.Process.Kill()
		<-p.done
		t.bury(p)
	}
}
