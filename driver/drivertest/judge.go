package drivertest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A Verdict is what [Judge] found.
type Verdict struct {
	Law    string
	Faults []string // what the law reported; none when the driver kept it
	Log    []string
}

// Judged reports whether the law could be judged. Where the machine or the store was too slow in
// every trial, the law neither convicts the driver nor acquits it.
func (v Verdict) Judged() bool {
	return !slices.ContainsFunc(v.Faults, func(f string) bool { return strings.HasPrefix(f, v.Law+notJudged) })
}

// Convicted reports whether the law was broken.
func (v Verdict) Convicted() bool { return len(v.Faults) > 0 && v.Judged() }

// String tells the verdict with every fault.
func (v Verdict) String() string {
	what := "broken"
	switch {
	case len(v.Faults) == 0:
		return v.Law + ": kept"
	case !v.Judged():
		what = "not judged"
	}
	return v.Law + ": " + what + "\n" + strings.Join(v.Faults, "\n")
}

// Judge tries one law and returns the verdict instead of failing a test. It is for tests which show
// that the suite convicts a driver that is broken on purpose.
func Judge(l Law, newHarness func(t T) Harness) Verdict {
	r := &recorder{name: l.Name}
	r.run(func() { l.Try(r, newHarness(r)) })
	r.cleanUp()
	return Verdict{Law: l.Name, Faults: r.faults, Log: r.log}
}

// recorder is a T that keeps what a test would print.
type recorder struct {
	name     string
	mu       sync.Mutex
	faults   []string
	log      []string
	cleanups []func()
}

// run calls f on a goroutine of its own, which Fatalf can end.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (r *recorder) cleanUp() {
	for {
		r.mu.Lock()
		if len(r.cleanups) == 0 {
			r.mu.Unlock()
			return
		}
		last := r.cleanups[len(r.cleanups)-1]
		r.cleanups = r.cleanups[:len(r.cleanups)-1]
		r.mu.Unlock()
		r.run(last)
	}
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return r.name }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.faults) > 0
}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}
