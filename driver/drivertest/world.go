package drivertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// world is one trial of one law: the processes and sessions that take part, the claims that they make, and the story
// of what happened. Whatever finds the law broken calls fail, on any goroutine that start began.
type world struct {
	t      T
	h      Harness
	law    Law
	traits driver.Traits

	excuse func(string) // is told what the harness excuses; may be nil

	attempt int           // the first is 1
	ttl     time.Duration // a session's, unless a law asks for another one
	machine time.Duration // by which the harness says that its machine may be late

	longValid time.Duration // what the store gives a session that asks for long
	rng       *rand.Rand

	ctx    context.Context //nolint:containedctx // a trial has one lifetime, and everything that goes on in it ends with this
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex
	story     story
	processes []*process
	names     []string
	actors    []*actor
	late      time.Duration // the longest time for which this process was kept from running
	overdue   time.Duration // the longest time for which a session was over that was to live
	slowest   time.Duration // the longest that the store took for an answer
	failures  int           // so far
	cut       bool          // a failure has ended what others were doing
	lacking   []string      // what was said to be missing
	tooLate   string        // the first step of the suite that came too late for what depends on it
}

const (
	patience  = 10 * time.Second // for a call that nothing holds up
	promptly  = 5 * time.Second  // after which a call whose context has ended must be back, whatever the machine
	manyTurns = 10_000           // spurious returns of one Wait, after which it is a spin
)

// seedVariable is the environment variable that gives the seed of random histories; without it each process has another one.
const seedVariable = "INTERLOCK_SEED"

// seed is that of this process, so that one number brings all of its histories back.
var seed = sync.OnceValue(func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err == nil {
		return n
	}
	return 1 + rand.Uint64N(999_999)
})

func newWorld(t T, h Harness, law Law, attempt int, ttl time.Duration) *world {
	w := &world{t: t, h: h, law: law, attempt: attempt, machine: 2 * time.Second}
	if s, ok := h.(Slacker); ok {
		w.machine = s.Slack()
	}
	w.rng = rand.New(rand.NewPCG(seed(), uint64(attempt)))
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.story.begin(h.Prefix())
	if len(h.Prefix()) > 64 {
		t.Fatalf("drivertest: the harness's prefix has %d bytes: want at most 64", len(h.Prefix()))
	}
	w.traits = w.process("probe").d.Traits()
	w.ttl = w.clamp(ttl)
	w.start(w.watchClock)
	return w
}

// probe finds out how long a long session really is.
func (w *world) probe() {
	a := w.processes[0].open("probe", w.long())
	w.longValid = a.valid
	a.close()
}

// clamp returns the next time-to-live that the store takes.
func (w *world) clamp(ttl time.Duration) time.Duration {
	ttl = max(ttl, w.traits.MinTTL)
	if w.traits.MaxTTL > 0 {
		ttl = min(ttl, w.traits.MaxTTL)
	}
	return ttl
}

// long is a time-to-live so long that nothing which heals itself by expiry can hide a fault.
func (w *world) long() time.Duration { return w.clamp(20 * w.ttl) }

// atOnce bounds what must not wait for any expiry of a long session: it is far below that and far above any delay
// of a busy machine.
func (w *world) atOnce() time.Duration { return min(promptly, w.longValid/2) }

// name returns a name that nobody has used.
func (w *world) name(of string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attempt > 1 {
		of = fmt.Sprintf("%s-again%d", of, w.attempt)
	}
	w.names = append(w.names, fmt.Sprintf("%s%s-%d", w.h.Prefix(), of, len(w.names)+1))
	return w.names[len(w.names)-1]
}

// restart restarts the store. A driver that was opened before may have connections that the restart has cut, and may say so
// when it is closed.
func (w *world) restart(r Restarter) {
	from := time.Now()
	w.mu.Lock()
	for _, p := range w.processes {
		p.gone = true
	}
	w.mu.Unlock()
	r.Restart(w.t)
	w.story.add(from, "store", "is restarted")
}

// end stops everything that the trial began and closes every driver. It returns the first failure of that.
func (w *world) end() (failed *failure) {
	w.cancel()
	w.tasks.Wait()
	w.mu.Lock()
	processes := w.processes
	w.mu.Unlock()
	closing := make([]*task, len(processes)) // together: where a part of the store does not answer, each may take seconds
	for i, p := range processes {
		closing[i] = w.start(func() {
			if err := p.close(context.Background()); err != nil && !p.gone {
				w.fail("Close of the driver of %s failed although nothing was wrong: %v", p.name, err)
			}
		})
	}
	for _, t := range closing {
		if <-t.done; failed == nil {
			failed = t.failed
		}
	}
	return failed
}

// lacks says that the harness has no means for a part of the law, and fails unless the harness says why.
func (w *world) lacks(means, forWhat string) {
	w.mu.Lock()
	said := slices.Contains(w.lacking, forWhat)
	w.lacking = append(w.lacking, forWhat)
	w.mu.Unlock()
	if said {
		return
	}
	why := w.cannot()
	if why == "" {
		w.t.Errorf("%s: nobody knows %s: the harness %T is no drivertest.%s. Implement that, or say by Cannot(%q) why it is impossible.",
			w.law.Name, forWhat, w.h, means, w.law.Name)
		return
	}
	w.excused(forWhat, why)
}

// cannot is what the harness says of the law, or "".
func (w *world) cannot() string {
	if a, ok := w.h.(Abstainer); ok {
		return a.Cannot(w.law.Name)
	}
	return ""
}

const noInspector = "it is no driver.Inspector"

// without says that nobody has tried what a driver may lack, and what it lacks, unless the harness knows a better reason.
func (w *world) without(what, lack string) {
	why := w.cannot()
	if why == "" {
		why = "the driver may lack it: " + lack
	}
	w.excused(what, why)
}

// excused says what nobody has tried, and why.
func (w *world) excused(what, why string) {
	w.t.Logf("excused: %s: nobody has tried %s: %s", w.law.Name, what, why)
	if w.excuse != nil {
		w.excuse(fmt.Sprintf("%s: %s: %s", w.law.Name, what, why))
	}
}

// failure travels as a panic from where a law was seen broken to where the test ends.
type failure struct {
	what string
	void string // why it proves nothing; empty: it does
	nth  int    // in the trial, counted from 1: what comes later may be its consequence
}

// failed gives a failure its number.
func (w *world) failed(f *failure) *failure {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures++
	f.nth = w.failures
	if w.cut && f.void == "" {
		f.void = "another part had ended the trial before"
	}
	return f
}

// fail ends the trial: the law is broken, unless it is by slowness. An error among args is what a driver answered.
func (w *world) fail(format string, args ...any) {
	f := &failure{what: fmt.Sprintf(format, args...), void: w.void()}
	for _, arg := range args {
		if err, ok := arg.(error); ok && f.void == "" && errors.As(err, new(unanswered)) {
			f.void = fmt.Sprintf("the store did not answer in the driver's own time: %v", err)
		}
	}
	panic(w.failed(f))
}

// caught runs f and returns the failure that ended it.
func caught(f func()) (failed *failure) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *failure:
			failed = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// during runs f, and a failure that ends it says during what.
func during(what string, f func()) {
	if failed := caught(f); failed != nil {
		failed.what += ", " + what
		panic(failed)
	}
}

// task is something that goes on beside the law's own steps.
type task struct {
	done   chan struct{}
	failed *failure
}

// start runs f beside the caller, who must wait for it.
func (w *world) start(f func()) *task {
	t := &task{done: make(chan struct{})}
	w.tasks.Go(func() {
		defer close(t.done)
		t.failed = caught(f)
	})
	return t
}

// wait returns when the task has ended; if the law was broken there, it is broken here.
func (t *task) wait() {
	<-t.done
	if t.failed != nil {
		panic(t.failed)
	}
}

// together runs all of fs at the same time and returns when the last has ended. The first failure ends the trial: what the
// others find then may be its consequence.
func (w *world) together(fs ...func()) {
	tasks := make([]*task, len(fs))
	for i, f := range fs {
		tasks[i] = w.start(func() {
			if failed := caught(f); failed != nil {
				w.mu.Lock()
				w.cut = true
				w.mu.Unlock()
				w.cancel()
				panic(failed)
			}
		})
	}
	waitForAll(tasks, sooner)
}

// sooner reports whether f was before the other.
func sooner(f, other *failure) bool { return f.nth < other.nth }

// apart is together for what has nothing in common, where what is certain comes first.
func (w *world) apart(fs ...func()) {
	tasks := make([]*task, len(fs))
	for i, f := range fs {
		tasks[i] = w.start(f)
	}
	waitForAll(tasks, func(f, other *failure) bool { return other.void != "" && f.void == "" })
}

// waitForAll returns when the last task has ended; of their failures that one counts which is better than the others.
func waitForAll(tasks []*task, better func(f, other *failure) bool) {
	var failed *failure
	for _, t := range tasks {
		<-t.done
		if t.failed != nil && (failed == nil || better(t.failed, failed)) {
			failed = t.failed
		}
	}
	if failed != nil {
		panic(failed)
	}
}

// parts tries one part of a law after the other. A session of a part that is over excuses nothing any more.
func (w *world) parts(parts ...func(*world)) {
	for _, part := range parts {
		part(w)
		w.mu.Lock()
		actors := w.actors
		w.mu.Unlock()
		for _, a := range actors {
			a.unkeep()
			a.lapse()
		}
	}
}

// intN returns a random number below n, from the trial's seed.
func (w *world) intN(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// sleep lets d pass.
func (w *world) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.ctx.Done():
	}
}

// until calls look, ever less often, until it answers true; after within, or longer where this process did not run, the law is
// broken in the words of what.
func (w *world) until(within time.Duration, look func() bool, what string, args ...any) {
	from := time.Now()
	for pause := time.Millisecond; !look(); pause = min(2*pause, 50*time.Millisecond) {
		if took := time.Since(from); took > within+w.lateness() {
			w.failLate("%s, after %v of looking", fmt.Sprintf(what, args...), took)
		}
		w.sleep(pause)
	}
}

// show adds to the story how the driver shows the lines that a failure names.
func (w *world) show(what string) {
	p := w.processes[0]
	look, ok := p.d.(driver.Inspector)
	w.mu.Lock()
	names := w.names
	w.mu.Unlock()
	for _, name := range names {
		if label := w.story.name(name); ok && strings.Contains(what, label) {
			_, _ = ask(context.WithoutCancel(w.ctx), w, p.name, func(ctx context.Context) (driver.Line, error) { return look.Line(ctx, name) },
				func(l driver.Line, err error) string {
					return fmt.Sprintf("Line(%s) → token %d, claims %+v, error %v", label, l.Fence, l.Claims, err)
				})
		}
	}
}

// tell returns the whole story of a trial that found what.
func (w *world) tell(what string) string {
	return fmt.Sprintf("%s.\n\nThe law says: %s\n\nTraits: %s; seed %d. What was done:\n%s",
		what, w.law.Says, describeTraits(w.traits), seed(), w.story.String())
}

func describeTraits(t driver.Traits) string {
	return fmt.Sprintf("%s; events %s, fence %s, TTL %v to %v, grain %v, notice of death %v, claims survive process %v, restart %v",
		t.Has(), t.Events, t.Fence, t.MinTTL, t.MaxTTL, t.Grain, t.Notice, t.Survives.Process, t.Survives.Restart)
}
