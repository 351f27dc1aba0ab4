//go:build linux || darwin

package torture

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
)

// stormer is a worker that is not spared anything: it writes everything down in its diary.
type stormer struct {
	job
	diary  *diary
	client *interlock.Client
	link   *link // nil if nothing is wrong with the wire

	inspector driver.Inspector // nil if nobody asks the store since when a claim is held
	unsaid    atomic.Bool      // the store does not say

	mu  sync.Mutex
	err error // the first that no fault explains
}

// storm runs the goroutines of one worker until the job's end.
func storm(j job, d *diary) error {
	s := &stormer{job: j, diary: d}
	var err error
	if j.Cuts || j.Lie {
		s.link = &link{ttl: j.TTL, grace: j.Grace, cuts: j.Cuts, alone: j.Alone, lie: j.Lie, spare: j.Spare, seed: j.Seed, counted: &d.head.cuts}
	}
	was := d.began()
	var closeClient func() error
	var store driver.Driver
	if s.client, store, closeClient, err = j.open(context.Background(), s.link, nil); err != nil {
		return err
	}
	if j.Looks {
		s.inspector, _ = store.(driver.Inspector)
	}
	d.head.ready.Store(1)
	s.End = d.awaitStart()
	if s.link != nil {
		s.link.end = s.End
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.End.sub(now()))
	defer cancel()
	var all sync.WaitGroup
	for i := range j.Count {
		all.Go(func() { s.live(ctx, i) })
	}
	all.Wait()
	if err := errors.Join(s.err, closeClient()); err != nil {
		return err
	}
	d.tidied(was, leftFile(j.Diary))
	return nil
}

// live is one goroutine: it takes one of the names after the other.
func (s *stormer) live(ctx context.Context, g int) {
	r := rand.New(rand.NewPCG(s.Seed, uint64(g)+1))
	for ctx.Err() == nil {
		name := r.IntN(len(s.Names))
		if s.Alone {
			name = g % len(s.Names)
		}
		rec, err := s.diary.ask(name, g)
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
			pause(time.Duration(r.Int64N(int64(s.Rest))), ctx.Done())
		}
	}
}

// visit takes the lock once.
func (s *stormer) visit(ctx context.Context, rec *record, name int, r *rand.Rand) error {
	if s.Guard == unlocked {
		rec.granted.Store(int64(now()))
		rec.valid.Store(int64(now()))
		err := s.add(rec, name, 0, s.held(rec, nil, r))
		rec.valid.Store(int64(now()))
		rec.leaving.Store(int64(now()))
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
		if o == unavailable { // the link is cut
			pause(time.Duration(r.Int64N(int64(s.TTL/4))), ctx.Done())
		}
		return err
	}
	rec.outcome.Store(uint32(granted))
	rec.fence.Store(lease.Fence())
	rec.granted.Store(int64(now()))
	rec.confirm(lease)
	s.diary.head.grants.Add(1)
	s.diary.head.holding.Add(1)
	defer s.diary.head.holding.Add(-1)

	// The end of the context is written down beside the work, which may be stuck in a system call.
	//nolint:contextcheck // the end of the lease is what this is about, not that of the wait
	stop := context.AfterFunc(lease.Context(), func() { s.told(rec, lease, "") })
	s.since(rec, lease, s.Names[name]) //nolint:contextcheck // as above
	err = s.work(rec, lease, name, r)
	if !rec.confirm(lease) {
		s.told(rec, lease, "when it asks: ") //nolint:contextcheck // as above
	}
	stop()
	rec.leaving.Store(int64(now()))
	released := lease.Release()
	rec.left.Store(int64(now()))
	if errors.Is(released, interlock.ErrLost) || errors.Is(released, interlock.ErrUncertain) {
		released = nil
	}
	return errors.Join(err, released)
}

// lock takes the name, or a permit of it.
func (s *stormer) lock(ctx context.Context, name string, options ...interlock.LockOption) (*interlock.Lease, error) {
	if s.Permits > 0 {
		return s.client.Semaphore(name, s.Permits, options...).Acquire(ctx, 1)
	}
	return s.client.Mutex(name, options...).Lock(ctx)
}

// since writes down when the store granted the claim, by its own clock, where it says that and answers soon.
func (s *stormer) since(rec *record, lease *interlock.Lease, name string) {
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

// told writes down that the holder knows of its loss, and how, unless that is known already.
func (s *stormer) told(rec *record, lease *interlock.Lease, how string) {
	t := now()
	if why := context.Cause(lease.Context()); errors.Is(why, interlock.ErrLost) && rec.told.CompareAndSwap(0, int64(t)) {
		copy(rec.why[:], how+why.Error())
		s.diary.head.losses.Add(1)
	}
}

// work is what a holder does: it adds 1 to the number. Some are cut off and hold on until they are told of
// their loss, after that or in the middle of it, and those in the middle then dawdle and write all the same: that the
// guard must see.
func (s *stormer) work(rec *record, lease *interlock.Lease, name int, r *rand.Rand) error {
	if s.Guard == shared {
		s.held(rec, lease, r)()
		return nil
	}
	stall := s.Stalls > 0 && r.IntN(s.Stalls) == 0
	if stall && s.link != nil {
		s.link.strike()
	}
	if stall && s.Wired {
		s.diary.head.wants.Store(1)
	}
	if stall && r.IntN(2) == 0 {
		late := time.Duration(r.Int64N(int64(s.TTL)))
		return s.add(rec, name, lease.Fence(), func() {
			s.holdOut(rec, lease)
			pause(late, nil)
		})
	}
	err := s.add(rec, name, lease.Fence(), s.held(rec, lease, r))
	if stall {
		s.holdOut(rec, lease)
	}
	return err
}

// held is what a holder does between reading and writing: nothing, and if that takes long it looks at the lease now and
// then. It does not stop when the lease is lost.
func (s *stormer) held(rec *record, lease *interlock.Lease, r *rand.Rand) func() {
	if s.Hold == 0 {
		return func() {}
	}
	d := time.Duration(r.Int64N(int64(2 * s.Hold)))
	return func() {
		for look := min(s.TTL/30, 20*time.Millisecond); d > look; d -= look {
			pause(look, nil)
			if lease != nil && !rec.confirm(lease) {
				s.told(rec, lease, "when it asks: ")
			}
		}
		pause(d, nil)
	}
}

// holdOut holds the lease until its loss, for five TTL at most, and looks at it all the time.
func (s *stormer) holdOut(rec *record, lease *interlock.Lease) {
	looks := time.NewTicker(s.TTL / 30)
	defer looks.Stop()
	for end := now().add(5 * s.TTL); now() < min(end, s.End.add(s.TTL)); {
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

// confirm writes down that the lease is valid, if it is. The clock is read first: a process may be stopped between the
// two, and the lease is valid when the clock was read if it still is when it is asked.
func (r *record) confirm(lease *interlock.Lease) bool {
	t := now()
	if lease.Err() != nil {
		return false
	}
	r.trust.Store(int64(now().add(time.Until(lease.Until()))))
	r.valid.Store(int64(t))
	return true
}

// add adds 1 to the number that the lock guards, and does something between reading and writing.
func (s *stormer) add(rec *record, name int, token uint64, between func()) error {
	change := func(n int64) int64 {
		rec.read.Store(n)
		rec.value.Store(n + 1)
		rec.write.Store(uint32(doubtful))
		between()
		return n + 1
	}
	var done writing
	var err error
	if s.Guard == fenced {
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

// outcomeOf sorts the errors of Lock. What no fault explains is returned.
func outcomeOf(ctx context.Context, err error) (outcome, error) {
	switch {
	case errors.Is(err, interlock.ErrUnavailable) && ctx.Err() == nil:
		return unavailable, nil
	case ctx.Err() == nil:
		return failed, err
	}
	return over, nil
}
