//go:build linux || darwin

package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
)

// stormWorker is a worker that suffers every fault, and logs everything.
type stormWorker struct {
	Job
	log    *Log
	client *interlock.Client
	link   *link // nil if nothing is wrong with the wire

	inspector driver.Inspector // nil if the store is not asked since when a claim is held
	unsaid    atomic.Bool      // the store does not say

	mu  sync.Mutex
	err error // the first that no fault explains
}

// storm runs the goroutines of one worker until the job's end.
func storm(j Job, d *Log) error {
	s := &stormWorker{Job: j, log: d}
	var err error
	if j.Cuts || j.Lie {
		s.link = &link{ttl: j.TTL, grace: j.Grace, cuts: j.Cuts, alone: j.Alone, lie: j.Lie, spare: j.Spare, seed: j.Seed, counted: &d.head.cuts}
	}
	was := before()
	var closeClient func() error
	var store driver.Driver
	if s.client, store, closeClient, err = j.open(context.Background(), s.link, nil); err != nil {
		return err
	}
	if j.AskSince {
		s.inspector, _ = store.(driver.Inspector)
	}
	d.head.ready.Store(1)
	s.End = d.awaitStart()
	if s.link != nil {
		s.link.end = s.End
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.End.Sub(monotonic.Now()))
	defer cancel()
	var all sync.WaitGroup
	for i := range j.Count {
		all.Go(func() { s.live(ctx, i) })
	}
	all.Wait()
	if err := errors.Join(s.err, closeClient()); err != nil {
		return err
	}
	logFootprint(d, was, leftFile(j.Log))
	return nil
}

// live is one goroutine: it locks one name after the other.
func (s *stormWorker) live(ctx context.Context, g int) {
	r := rand.New(rand.NewPCG(s.Seed, uint64(g)+1))
	for ctx.Err() == nil {
		name := r.IntN(len(s.Names))
		if s.Alone {
			name = g % len(s.Names)
		}
		rec, err := s.log.ask(name, g)
		if err != nil {
			return
		}
		if err := s.visit(ctx, rec, name, r); err != nil {
			s.mu.Lock()
			if s.err == nil {
				s.err = err
			}
			s.mu.Unlock()
		}
		if s.Rest > 0 {
			monotonic.Pause(time.Duration(r.Int64N(int64(s.Rest))), ctx.Done())
		}
	}
}

// visit locks a name once, and logs what comes of it.
func (s *stormWorker) visit(ctx context.Context, rec *record, name int, r *rand.Rand) error {
	if s.Guard == Unlocked {
		rec.granted.Store(int64(monotonic.Now()))
		rec.valid.Store(int64(monotonic.Now()))
		err := s.add(rec, name, 0, s.held(rec, nil, r))
		rec.valid.Store(int64(monotonic.Now()))
		rec.leaving.Store(int64(monotonic.Now()))
		return err
	}
	var options []interlock.LockOption
	if s.Alone {
		options = append(options, interlock.Isolated())
	}
	lease, err := s.lock(ctx, s.Names[name], options...)
	if err != nil {
		o, err := outcomeOf(ctx, err)
		rec.outcome.Store(uint32(o))
		if o == history.Unavailable { // the link is cut
			monotonic.Pause(time.Duration(r.Int64N(int64(s.TTL/4))), ctx.Done())
		}
		return err
	}
	rec.outcome.Store(uint32(history.Granted))
	rec.fence.Store(lease.Fence())
	rec.granted.Store(int64(monotonic.Now()))
	rec.confirm(lease)
	s.log.head.grants.Add(1)
	s.log.head.holding.Add(1)
	defer s.log.head.holding.Add(-1)

	// The end of the context is logged beside the work, which may be stuck in a system call.
	//nolint:contextcheck // the end of the lease is what this is about, not that of the wait
	stop := context.AfterFunc(lease.Context(), func() { s.told(rec, lease, "") })
	s.since(rec, lease, s.Names[name]) //nolint:contextcheck // as above
	err = s.work(rec, lease, name, r)
	if !rec.confirm(lease) {
		s.told(rec, lease, "when it asks: ") //nolint:contextcheck // as above
	}
	stop()
	rec.leaving.Store(int64(monotonic.Now()))
	released := lease.Release()
	rec.left.Store(int64(monotonic.Now()))
	if errors.Is(released, interlock.ErrLost) || errors.Is(released, interlock.ErrUncertain) {
		released = nil
	}
	return errors.Join(err, released)
}

// lock acquires the name, or a permit of it.
func (s *stormWorker) lock(ctx context.Context, name string, options ...interlock.LockOption) (*interlock.Lease, error) {
	if s.Permits > 0 {
		return s.client.Semaphore(name, s.Permits, options...).Acquire(ctx, 1)
	}
	return s.client.Mutex(name, options...).Lock(ctx)
}

// since logs when the store granted the claim, by its own clock, where it says that and
// answers soon.
func (s *stormWorker) since(rec *record, lease *interlock.Lease, name string) {
	if s.inspector == nil || s.unsaid.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(lease.Context(), s.TTL/10)
	defer cancel()
	line, err := s.inspector.Line(ctx, name)
	if err != nil {
		return
	}
	for _, h := range line.Claims {
		if !h.Held || h.Owner.Name != s.owner() || h.Fence > lease.Fence() || h.Fence+driver.Stride <= lease.Fence() && h.Fence > 0 {
			continue
		}
		if h.Since.IsZero() {
			s.unsaid.Store(true)
			return
		}
		rec.since.Store(h.Since.UnixMicro())
	}
}

// told logs that the holder knows of its loss, and how, unless it was logged before.
func (s *stormWorker) told(rec *record, lease *interlock.Lease, how string) {
	t := monotonic.Now()
	if why := context.Cause(lease.Context()); errors.Is(why, interlock.ErrLost) && rec.told.CompareAndSwap(0, int64(t)) {
		copy(rec.why[:], how+why.Error())
		s.log.head.losses.Add(1)
	}
}

// work adds 1 to the number. Some holders are cut off and hold on until they are told of their
// loss, after that or in the middle of it. Those in the middle then wait and write all the same,
// which the guard must notice.
func (s *stormWorker) work(rec *record, lease *interlock.Lease, name int, r *rand.Rand) error {
	if s.Guard == Shared {
		s.held(rec, lease, r)()
		return nil
	}
	stall := s.Stalls > 0 && r.IntN(s.Stalls) == 0
	if stall && s.link != nil {
		s.link.cutSoon()
	}
	if stall && s.Proxied {
		s.log.head.wants.Store(1)
	}
	if stall && r.IntN(2) == 0 {
		late := time.Duration(r.Int64N(int64(s.TTL)))
		return s.add(rec, name, lease.Fence(), func() {
			s.holdOut(rec, lease)
			monotonic.Pause(late, nil)
		})
	}
	err := s.add(rec, name, lease.Fence(), s.held(rec, lease, r))
	if stall {
		s.holdOut(rec, lease)
	}
	return err
}

// held returns what a holder does between reading and writing: it waits, and looks at the lease now
// and then. It does not stop when the lease is lost.
func (s *stormWorker) held(rec *record, lease *interlock.Lease, r *rand.Rand) func() {
	if s.Hold == 0 {
		return func() {}
	}
	d := time.Duration(r.Int64N(int64(2 * s.Hold)))
	return func() {
		for look := min(s.TTL/30, 20*time.Millisecond); d > look; d -= look {
			monotonic.Pause(look, nil)
			if lease != nil && !rec.confirm(lease) {
				s.told(rec, lease, "when it asks: ")
			}
		}
		monotonic.Pause(d, nil)
	}
}

// holdOut holds the lease until its loss, for five TTL at most, and looks at it again and again.
func (s *stormWorker) holdOut(rec *record, lease *interlock.Lease) {
	looks := time.NewTicker(s.TTL / 30)
	defer looks.Stop()
	for end := monotonic.Now().Add(5 * s.TTL); monotonic.Now() < min(end, s.End.Add(s.TTL)); {
		if !rec.confirm(lease) {
			s.told(rec, lease, "when it asks: ")
			return
		}
		select {
		case <-lease.Context().Done():
			s.told(rec, lease, "")
			return
		case <-looks.C:
		}
	}
}

// confirm logs that the lease is valid, if it is. The clock is read first: a process may be
// stopped between the two, and the lease is valid when the clock was read if it still is when it is
// asked.
func (r *record) confirm(lease *interlock.Lease) bool {
	t := monotonic.Now()
	if lease.Err() != nil {
		return false
	}
	r.trust.Store(int64(monotonic.Now().Add(time.Until(lease.Until()))))
	r.valid.Store(int64(t))
	return true
}

// add adds 1 to the number that the lock guards, and does something between reading and writing.
func (s *stormWorker) add(rec *record, name int, token uint64, between func()) error {
	change := func(n int64) int64 {
		rec.read.Store(n)
		rec.value.Store(n + 1)
		rec.write.Store(uint32(history.Doubtful))
		between()
		return n + 1
	}
	var done history.WriteOutcome
	var err error
	if s.Guard == Fenced {
		done, err = addFenced(s.Files[name], token, change)
	} else {
		done, err = addPlain(s.Files[name], change)
	}
	rec.write.Store(uint32(done))
	if err != nil {
		return fmt.Errorf("torture: the file behind %s: %w", s.Names[name], err)
	}
	return nil
}

// outcomeOf returns the outcome of a call of Lock that failed, and the error if no fault explains
// it.
func outcomeOf(ctx context.Context, err error) (history.Outcome, error) {
	switch {
	case errors.Is(err, interlock.ErrUnavailable) && ctx.Err() == nil:
		return history.Unavailable, nil
	case ctx.Err() == nil:
		return history.Failed, err
	}
	return history.Over, nil
}
