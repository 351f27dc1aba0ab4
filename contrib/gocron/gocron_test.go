package interlockgocron_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/interlock-go/interlock"
	interlockgocron "github.com/interlock-go/interlock/contrib/gocron"
	"github.com/interlock-go/interlock/memlock"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// machine is one of a fleet: a client and a scheduler of its own, whose jobs run when they are told to.
type machine struct {
	t         *testing.T
	name      string
	client    *interlock.Client
	scheduler gocron.Scheduler
	events    chan<- string
	errs      chan error // of runs that failed or were skipped
}

// newMachine makes one over the store; option makes that of its scheduler.
func newMachine(t *testing.T, name string, store *memlock.Driver, events chan<- string, option func(*machine) gocron.SchedulerOption) *machine {
	t.Helper()
	client, err := interlock.New(store.Share(), &interlock.Options{Owner: name})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, name: name, client: client, events: events, errs: make(chan error, 100)}
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, interlock.ErrUncertain) {
			t.Error(err)
		}
	})
	m.scheduler, err = gocron.NewScheduler(option(m))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.scheduler.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	m.scheduler.Start()
	return m
}

// job adds one that runs only when it is told to, for the first time in a year.
func (m *machine) job(name string, task gocron.Task) gocron.Job {
	m.t.Helper()
	options := []gocron.JobOption{gocron.WithEventListeners(
		gocron.AfterJobRuns(func(uuid.UUID, string) { m.events <- m.name + " ran" }),
		gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			m.errs <- err
			m.events <- m.name + " skipped"
		}),
		gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) {
			m.errs <- err
			m.events <- m.name + " failed"
		}),
	)}
	if name != "" {
		options = append(options, gocron.WithName(name))
	}
	j, err := m.scheduler.NewJob(gocron.DurationJob(365*24*time.Hour), task, options...)
	if err != nil {
		m.t.Fatal(err)
	}
	return j
}

// run has a job run now.
func (m *machine) run(j gocron.Job) {
	m.t.Helper()
	if err := j.RunNow(); err != nil {
		m.t.Fatal(err)
	}
}

// next returns what comes of a channel.
func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(patience):
		t.Fatal("nothing has come for 30 s")
		panic("unreachable")
	}
}

// free waits until nobody stands in the line of name.
func free(t *testing.T, store *memlock.Driver, name string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for l, err := range store.Watch(ctx, name) {
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Claims) == 0 {
			return
		}
	}
}

func locked(k **interlockgocron.Locker, minHold time.Duration) func(*machine) gocron.SchedulerOption {
	return func(m *machine) gocron.SchedulerOption {
		*k = interlockgocron.NewLocker(m.client, minHold)
		return gocron.WithDistributedLocker(*k)
	}
}

func quick(context.Context) error { return nil }

// A job of no time at all, and a machine whose clock is late: it comes when the first has released.
func TestLocker_AFastJobRunsOnceWhereClocksDiffer(t *testing.T) {
	t.Parallel()
	for _, minHold := range []time.Duration{0, time.Hour} {
		store, events := memlock.New(), make(chan string, 100)
		var ka, kb *interlockgocron.Locker
		a := newMachine(t, "a", store, events, locked(&ka, minHold))
		b := newMachine(t, "b", store, events, locked(&kb, minHold))
		ja, jb := a.job("report", ka.Task(quick)), b.job("report", kb.Task(quick))
		a.run(ja)
		if got := next(t, events); got != "a ran" {
			t.Fatalf("%s, want a to run", got)
		}
		want := "b skipped"
		if minHold == 0 {
			free(t, store, "report")
			want = "b ran"
		}
		b.run(jb)
		if got := next(t, events); got != want {
			t.Errorf("with a minimum hold of %v: %s, want %s", minHold, got, want)
		}
		if minHold > 0 {
			if err := next(t, b.errs); !errors.Is(err, interlock.ErrHeld) || !strings.Contains(err.Error(), "held by a") {
				t.Errorf("skipped for %v, want held by a", err)
			}
			store.Lose("report") // for which Close would wait
		}
	}
}

// Twenty jobs that take their time come due on three machines at once: each runs on one of them. Locker without Task serves
// plain functions as well.
func TestLocker_NoJobRunsTwice(t *testing.T) {
	t.Parallel()
	store, events := memlock.New(), make(chan string, 100)
	ran, end := make(chan string, 100), make(chan struct{})
	var begin []func()
	const jobs = 20
	for _, name := range []string{"a", "b", "c"} {
		var k *interlockgocron.Locker
		m := newMachine(t, name, store, events, locked(&k, 0))
		for i := range jobs {
			job := fmt.Sprint("job ", i)
			work := func(context.Context) error {
				ran <- job
				<-end
				return nil
			}
			task := k.Task(work)
			if i%2 == 0 {
				task = gocron.NewTask(work)
			}
			j := m.job(job, task)
			begin = append(begin, func() { m.run(j) })
		}
	}
	for _, run := range begin {
		run()
	}
	skipped, n := 0, make(map[string]int)
	for range 3 * jobs { // while none of those that run has ended
		select {
		case job := <-ran:
			n[job]++
		case <-events:
			skipped++
		case <-time.After(patience):
			t.Fatalf("%d jobs run and %d were skipped, want 60 in all", len(n), skipped)
		}
	}
	close(end)
	if len(n) != jobs || skipped != 2*jobs {
		t.Errorf("%v, and %d were skipped: want %d jobs once, and %d skipped", n, skipped, jobs, 2*jobs)
	}
	for range jobs {
		if got := next(t, events); !strings.HasSuffix(got, " ran") {
			t.Errorf("%s, want it to end well", got)
		}
	}
}

type key struct{}

// The store loses the lock while the job runs: its context ends, and gocron is told.
func TestLocker_AJobHearsOfTheLoss(t *testing.T) {
	t.Parallel()
	store, events := memlock.New(), make(chan string, 100)
	var k *interlockgocron.Locker
	m := newMachine(t, "a", store, events, locked(&k, 0))
	tokens := make(chan uint64, 1)
	j, err := m.scheduler.NewJob(gocron.DurationJob(time.Hour), k.Task(func(ctx context.Context) error {
		if ctx.Value(key{}) != "of the job" {
			t.Error("the context has not the values of the job's")
		}
		tokens <- interlock.Fence(ctx, "report")
		<-ctx.Done()
		if err := context.Cause(ctx); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("the context ended with %v, want the loss", err)
		}
		return nil // as a job does that has not looked
	}), gocron.WithName("report"), gocron.WithContext(context.WithValue(t.Context(), key{}, "of the job")), gocron.WithEventListeners(
		gocron.AfterJobRuns(func(uuid.UUID, string) { m.errs <- nil }),
		gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { m.errs <- err }),
	))
	if err != nil {
		t.Fatal(err)
	}
	m.run(j)
	if next(t, tokens) == 0 {
		t.Error("no token in the context")
	}
	store.Lose("report")
	if err := next(t, m.errs); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("gocron is told %v, want the loss", err)
	}
}

// Shutdown ends the context of the job, and the lock is released though it has ended.
func TestLocker_ShutdownEndsTheJobAndReleases(t *testing.T) {
	t.Parallel()
	store, events := memlock.New(), make(chan string, 100)
	var k *interlockgocron.Locker
	m := newMachine(t, "a", store, events, locked(&k, 0))
	begun := make(chan struct{})
	m.run(m.job("report", k.Task(func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return nil
	})))
	next(t, begun)
	if err := m.scheduler.Shutdown(); err != nil {
		t.Error(err)
	}
	if got := next(t, events); got != "a ran" {
		t.Errorf("%s, want it to end well: nothing was lost", got)
	}
	free(t, store, "report")
}

func TestLocker_Misuse(t *testing.T) {
	t.Parallel()
	store, events := memlock.New(), make(chan string, 100)
	var k *interlockgocron.Locker
	m := newMachine(t, "a", store, events, locked(&k, 0))
	other := interlockgocron.NewLocker(m.client, 0)
	m.run(m.job("report", other.Task(quick)))
	if got := next(t, events); got != "a failed" {
		t.Fatalf("a task of another Locker: %s, want it to fail", got)
	}
	if err := next(t, m.errs); !errors.Is(err, interlockgocron.ErrNoLock) {
		t.Errorf("a task of another Locker: %v, want ErrNoLock", err)
	}

	// By the name that gocron gives to a job without one.
	name := m.job("", k.Task(quick)).Name()
	defer func() {
		if with := fmt.Sprint(recover()); !strings.Contains(with, "gocron.WithName") {
			t.Errorf("a job called %q: %s, want a panic that says what to do", name, with)
		}
	}()
	_, _ = k.Lock(t.Context(), name)
}

// An asked elector tells what it has answered to gocron.
type asked struct {
	*interlockgocron.Elector
	answers chan error
}

func (a asked) IsLeader(ctx context.Context) error {
	err := a.Elector.IsLeader(ctx)
	a.answers <- err
	return err
}

// Two machines stand, and jobs run on the one that leads, until it loses its leadership.
func TestElector_JobsRunWhereTheLeaderIs(t *testing.T) {
	t.Parallel()
	store, events := memlock.New(), make(chan string, 100)
	type stander struct {
		*machine
		elector *interlockgocron.Elector
		begun   chan uint64
		answers chan error // to gocron: whether it leads
		job     gocron.Job
	}
	stand := func(name string) *stander {
		s := &stander{begun: make(chan uint64, 100), answers: make(chan error, 100)}
		s.machine = newMachine(t, name, store, events, func(m *machine) gocron.SchedulerOption {
			var err error
			if s.elector, err = interlockgocron.NewElector(m.client, "jobs"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.elector.Close(); err != nil {
					t.Error(err)
				}
			})
			return gocron.WithDistributedElector(asked{s.elector, s.answers})
		})
		s.job = s.machine.job("report", s.elector.Task(func(ctx context.Context) error {
			s.begun <- interlock.Fence(ctx, "jobs")
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		return s
	}
	leader := func(s *stander) {
		t.Helper()
		for l, err := range s.client.Election("jobs").Observe(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if l.Owner.Name == s.name {
				break
			}
		}
		for s.elector.IsLeader(t.Context()) != nil { // as soon as it has heard what the store knows
			if t.Context().Err() != nil {
				return
			}
		}
	}
	a := stand("a")
	leader(a)
	b := stand("b")
	if err := b.elector.IsLeader(t.Context()); !errors.Is(err, interlockgocron.ErrNotLeader) {
		t.Errorf("b beside the leader a: %v, want ErrNotLeader", err)
	}
	b.run(b.job) // which gocron skips, and tells nobody
	if err := next(t, b.answers); !errors.Is(err, interlockgocron.ErrNotLeader) {
		t.Errorf("gocron is told by b, beside the leader a, %v, want ErrNotLeader", err)
	}
	a.run(a.job)
	token := next(t, a.begun)

	store.Lose("jobs")
	if got := next(t, events); got != "a failed" {
		t.Errorf("%s, want a to fail", got)
	}
	if err := next(t, a.errs); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("the job of a failed with %v, want the loss", err)
	}
	leader(b)
	if err := a.elector.IsLeader(t.Context()); !errors.Is(err, interlockgocron.ErrNotLeader) {
		t.Errorf("a beside the leader b: %v, want ErrNotLeader", err)
	}
	b.run(b.job)
	if later := next(t, b.begun); later <= token {
		t.Errorf("the second leader has the token %d, the first had %d", later, token)
	}
	if len(a.begun)+len(b.begun) > 0 {
		t.Error("a job has run where there was no leader")
	}

	// Who closes lets the next one lead at once, whose jobs have ended before.
	if err := b.scheduler.Shutdown(); err != nil {
		t.Error(err)
	}
	if err := b.elector.Close(); err != nil {
		t.Error(err)
	}
	if err := b.elector.IsLeader(t.Context()); !errors.Is(err, interlockgocron.ErrNotLeader) {
		t.Errorf("after Close: %v, want ErrNotLeader", err)
	}
	leader(a)
}

// A job of the leader has the values of its own context behind those of the leadership.
func TestElector_AJobHasItsValues(t *testing.T) {
	t.Parallel()
	var elector *interlockgocron.Elector
	m := newMachine(t, "a", memlock.New(), make(chan string, 100), func(m *machine) gocron.SchedulerOption {
		var err error
		if elector, err = interlockgocron.NewElector(m.client, "jobs"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := elector.Close(); err != nil {
				t.Error(err)
			}
		})
		return gocron.WithDistributedElector(elector)
	})
	for end := time.Now().Add(patience); elector.IsLeader(t.Context()) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not lead after 30 s")
		}
	}
	values := make(chan any, 1)
	j, err := m.scheduler.NewJob(gocron.DurationJob(time.Hour), elector.Task(func(ctx context.Context) error {
		values <- ctx.Value(key{})
		return nil
	}), gocron.WithContext(context.WithValue(t.Context(), key{}, "of the job")))
	if err != nil {
		t.Fatal(err)
	}
	m.run(j)
	if got := next(t, values); got != "of the job" {
		t.Errorf("the context of the job has the value %v, want that of the job", got)
	}
}

func TestElector_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	client, err := interlock.New(memlock.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if e, err := interlockgocron.NewElector(client, ""); err == nil || e != nil {
		t.Errorf("an election without a name: %v, %v", e, err)
	}
}
