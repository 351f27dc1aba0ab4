package drivertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// trial is one attempt to find one law broken. Whatever finds it broken calls fail, on any
// goroutine that start began.
type trial struct {
	tasks
	delays

	t      T
	h      Harness
	law    string // its name
	says   string // what it says
	traits driver.Traits

	excuse func(string) // is told what the harness excuses; may be nil

	attempt   int           // the first is 1
	ttl       time.Duration // a session's, unless a law asks for another one
	longValid time.Duration // what the store gives a session that asks for long

	trace trace

	mu       sync.Mutex
	rng      *rand.Rand
	names    []string
	sessions []renewable
	lacking  []string // what was said to be missing
}

// renewable is a session of the suite, as far as the trial has to know when it is over.
type renewable interface {
	overdue()      // notes if its time is over although it was to live
	lapse()        // says that nobody is to renew it any more
	stopRenewing() // ends its renewals
}

// manyTurns is the number of spurious returns of one Wait after which it is a spin.
const manyTurns = 10_000

// seedVariable is the environment variable that gives the seed of random histories; without it each
// process has another one.
const seedVariable = "INTERLOCK_SEED"

// seed is that of this process, so that one number brings all of its histories back.
var seed = sync.OnceValue(func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err == nil {
		return n
	}
	return 1 + rand.Uint64N(999_999)
})

func newTrial(t T, h Harness, law, says string, attempt int) *trial {
	w := &trial{t: t, h: h, law: law, says: says, attempt: attempt, delays: delays{machine: 2 * time.Second}}
	if s, ok := h.(Slacker); ok {
		w.machine = s.Slack()
	}
	w.rng = rand.New(rand.NewPCG(seed(), uint64(attempt)))
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.trace.begin(h.Prefix())
	if len(h.Prefix()) > 64 {
		t.Fatalf("drivertest: the harness's prefix has %d bytes: want at most 64", len(h.Prefix()))
	}
	return w
}

// clamp returns the next time-to-live that the store takes.
func (w *trial) clamp(ttl time.Duration) time.Duration {
	ttl = max(ttl, w.traits.MinTTL)
	if w.traits.MaxTTL > 0 {
		ttl = min(ttl, w.traits.MaxTTL)
	}
	return ttl
}

// long is a time-to-live so long that nothing which heals itself by expiry can hide a fault.
func (w *trial) long() time.Duration { return w.clamp(20 * w.ttl) }

// atOnce bounds what must not wait for any expiry of a long session: it is far below that and far
// above any delay of a busy machine.
func (w *trial) atOnce() time.Duration { return min(promptly, w.longValid/2) }

// name returns a name that nobody has used.
func (w *trial) name(of string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attempt > 1 {
		of = fmt.Sprintf("%s-again%d", of, w.attempt)
	}
	w.names = append(w.names, fmt.Sprintf("%s%s-%d", w.h.Prefix(), of, len(w.names)+1))
	return w.names[len(w.names)-1]
}

// intN returns a random number below n, from the trial's seed.
func (w *trial) intN(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// until calls look, ever less often, until it answers true; after within, or longer where this
// process did not run, the law is broken in the words of what.
func (w *trial) until(within time.Duration, look func() bool, what string, args ...any) {
	from := time.Now()
	for pause := time.Millisecond; !look(); pause = min(2*pause, 50*time.Millisecond) {
		if took := time.Since(from); took > within+w.lateness() {
			w.failLate("%s, after %v of looking", fmt.Sprintf(what, args...), took)
		}
		w.sleep(pause)
	}
}

// opened adds a session.
func (w *trial) opened(s renewable) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions = append(w.sessions, s)
}

// all returns the sessions.
func (w *trial) all() []renewable {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessions
}

// void returns why a fault that is found now proves nothing, or "".
func (w *trial) void() string {
	for _, s := range w.all() {
		s.overdue()
	}
	return w.why(w.ttl)
}

// fail ends the trial: the law is broken, unless it is by slowness. An error among args is what a
// driver answered.
func (w *trial) fail(format string, args ...any) {
	f := &failure{what: fmt.Sprintf(format, args...), void: w.void()}
	for _, arg := range args {
		if err, ok := arg.(error); ok && f.void == "" && errors.As(err, new(unanswered)) {
			f.void = fmt.Sprintf("the store did not answer in the driver's own time: %v", err)
		}
	}
	panic(w.number(f))
}

// failLate is fail for what did not come in time, which proves nothing of a slow store.
func (w *trial) failLate(format string, args ...any) {
	w.slow()
	w.fail(format, args...)
}

// tooSlow ends the trial: what it was about to show can no longer be seen.
func (w *trial) tooSlow(what string) {
	panic(w.number(&failure{what: what + ": too late to show anything", void: what}))
}

// lacks says that the harness has no means for a part of the law, and fails unless the harness says
// why.
func (w *trial) lacks(means, forWhat string) {
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
			w.law, forWhat, w.h, means, w.law)
		return
	}
	w.excused(forWhat, why)
}

// cannot is what the harness says of the law, or "".
func (w *trial) cannot() string {
	if a, ok := w.h.(Abstainer); ok {
		return a.Cannot(w.law)
	}
	return ""
}

// without says that nobody has tried what a driver may lack, and what it lacks, unless the harness
// knows a better reason.
func (w *trial) without(what, lack string) {
	why := w.cannot()
	if why == "" {
		why = "the driver may lack it: " + lack
	}
	w.excused(what, why)
}

// excused says what nobody has tried, and why.
func (w *trial) excused(what, why string) {
	w.t.Logf("excused: %s: nobody has tried %s: %s", w.law, what, why)
	if w.excuse != nil {
		w.excuse(fmt.Sprintf("%s: %s: %s", w.law, what, why))
	}
}

// tell returns the whole trace of a trial that found what.
func (w *trial) tell(what string) string {
	return fmt.Sprintf("%s.\n\nThe law says: %s\n\nTraits: %s; seed %d. What was done:\n%s",
		what, w.says, describeTraits(w.traits), seed(), w.trace.String())
}

// unknown insists that err, of a call that nobody has answered, claims no outcome.
func (w *trial) unknown(what string, err error) {
	for _, known := range []error{driver.ErrSessionLost, driver.ErrRefused, driver.ErrBroken, driver.ErrGone} {
		if errors.Is(err, known) {
			w.fail("%s was not answered, and its error says that the outcome is known, %q: %v", what, known, err)
		}
	}
}

// stride is how many tokens a grant reserves.
func (w *trial) stride() uint64 {
	if w.traits.Single {
		return 1
	}
	return driver.Stride
}

func describeTraits(t driver.Traits) string {
	return fmt.Sprintf("%s; events %s, fence %s, TTL %v to %v, grain %v, notice of death %v, claims survive process %v, restart %v",
		t.Has(), t.Events, t.Fence, t.MinTTL, t.MaxTTL, t.Grain, t.Notice, t.Survives.Process, t.Survives.Restart)
}
