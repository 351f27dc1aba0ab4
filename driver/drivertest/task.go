package drivertest

import (
	"context"
	"sync"
	"time"
)

// tasks are what goes on in a trial at the same time. All of it ends with ctx.
type tasks struct {
	ctx     context.Context //nolint:containedctx // a trial has one lifetime, and everything that goes on in it ends with this
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	failures int  // so far
	cut      bool // a failure has ended what others were doing
}

// task is something that goes on beside the law's own steps.
type task struct {
	done   chan struct{}
	failed *failure
}

// number gives a failure its number.
func (s *tasks) number(f *failure) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	f.nth = s.failures
	if s.cut && f.void == "" {
		f.void = "another part had ended the trial before"
	}
	return f
}

// start runs f beside the caller, who must wait for it.
func (s *tasks) start(f func()) *task {
	t := &task{done: make(chan struct{})}
	s.running.Go(func() {
		defer close(t.done)
		t.failed = caught(f)
	})
	return t
}

// together runs all of fs at the same time and returns when the last has ended. The first failure
// ends the trial: what the others find then may be its consequence.
func (s *tasks) together(fs ...func()) {
	tasks := make([]*task, len(fs))
	for i, f := range fs {
		tasks[i] = s.start(func() {
			if failed := caught(f); failed != nil {
				s.mu.Lock()
				s.cut = true
				s.mu.Unlock()
				s.cancel()
				panic(failed)
			}
		})
	}
	waitForAll(tasks, sooner)
}

// apart is together for what has nothing in common, where what is certain comes first.
func (s *tasks) apart(fs ...func()) {
	tasks := make([]*task, len(fs))
	for i, f := range fs {
		tasks[i] = s.start(f)
	}
	waitForAll(tasks, func(f, other *failure) bool { return other.void != "" && f.void == "" })
}

// sleep lets d pass.
func (s *tasks) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// wait returns when the task has ended; if the law was broken there, it is broken here.
func (t *task) wait() {
	<-t.done
	if t.failed != nil {
		panic(t.failed)
	}
}

// waitForAll returns when the last task has ended; of their failures that one counts which is
// better than the others.
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
