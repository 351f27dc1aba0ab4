package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// surveyor finds out which masters have a vote.
type surveyor struct {
	*shared
	mu       sync.Mutex    // of who surveys
	patience time.Duration // for the last masters; guarded by mu, as is:
	begun    time.Time     // the last one
	giveUp   []int         // masters that an operator gives up in this survey
	refusal  error         // why they are not
	set      atomic.Pointer[membership]
	unmade   atomic.Pointer[unmade] // the set that is not there yet, as the last survey of a driver that looks has found
}

// Between surveys that were not called for, while a master has no vote.
const (
	soonest = 50 * time.Millisecond
	latest  = time.Second
)

// watch surveys the masters when one of them has no vote, until all have.
func (d *surveyor) watch() {
	defer d.serving.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for pause := soonest; ; {
		select {
		case <-d.wanted:
			pause = soonest
		case <-timer.C:
		case <-d.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(d.ctx, d.surveying())
		_, missing, err := d.look(ctx)
		cancel()
		if err != nil || missing {
			timer.Reset(pause)
			pause = min(2*pause, latest)
		}
		if !rest(d.ctx, soonest) { // however many ask for it
			return
		}
	}
}

// look asks all masters who they are, sees to it that they agree on the set, and gives each its vote that may have one. It
// reports whether one has none.
func (d *surveyor) look(ctx context.Context) (_ []*portrait, missing bool, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lookLocked(ctx)
}

// lookAfter has the masters looked at, unless that was begun since, and waits for it, but not longer than patience. What calls it is
// waited for when the driver closes.
func (d *surveyor) lookAfter(since time.Time, patience time.Duration) {
	done := make(chan struct{})
	d.serving.Add(1)
	go func() {
		defer d.serving.Done()
		defer close(done)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.begun.Before(since) {
			ctx, cancel := context.WithTimeout(d.ctx, d.surveying())
			defer cancel()
			if _, missing, err := d.lookLocked(ctx); err != nil || missing {
				d.resurvey()
			}
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// surveying bounds a survey.
func (d *surveyor) surveying() time.Duration {
	return 4 * max(d.options.NodeTimeout, redisconn.DefaultTimeout)
}

// lookLocked is look for who surveys.
func (d *surveyor) lookLocked(ctx context.Context) (_ []*portrait, missing bool, _ error) {
	d.begun = time.Now()
	var all []*portrait
	var generations []uint64
	var set membership
	var errs []error
	var err error
	patience := time.Now().Add(foundation)
	for tries := overtakings; tries > 0; {
		all, generations = d.portraits(ctx)
		errs = make([]error, len(d.nodes))
		set, err = d.agree(ctx, all, errs)
		var f *founding
		if errors.As(err, &f) && time.Now().Before(patience) && rest(ctx, soonest) {
			continue
		}
		if !slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, errOvertaken) }) {
			break
		}
		tries--
	}
	if err != nil && d.set.Load() == nil {
		return all, true, err // of who opens: it says by itself who is away, and may be tried again and again
	}
	if err != nil {
		for i, n := range d.nodes {
			lost := &standing{err: fmt.Errorf("%w: %w", driver.ErrNotSent, err)}
			switch before := n.standing.Load(); {
			case all[i].err != nil:
				d.sawOf(n, all[i], generations[i], nil)
			case before == nil:
				n.standing.Store(lost)
			case heard(all) >= d.quorum:
				lost.run = before.run
				n.standing.Store(lost)
			}
		}
		return all, true, err
	}
	if d.unmade.Load() != nil {
		for i, n := range d.nodes {
			d.sawOf(n, all[i], generations[i], errs[i])
		}
		return all, true, nil
	}
	for i, n := range d.nodes {
		n.meets(all[i], set)
		vote := set.vote(n.member)
		n.vote.Store(&vote)
	}
	d.set.Store(&set)
	d.told.Store(int64(time.Since(epoch)))
	for i, n := range d.nodes {
		missing = d.sawOf(n, all[i], generations[i], errs[i]) || missing
	}
	return all, missing, nil
}

// heard counts the masters that have answered.
func heard(all []*portrait) (n int) {
	for _, p := range all {
		if p.err == nil {
			n++
		}
	}
	return n
}

// meets takes in which member of the set the master is, if it says so.
func (n *node) meets(p *portrait, set membership) {
	switch {
	case p.away() != nil:
	case !p.strayed && slices.Contains(set.members, p.id):
		n.member = p.id
	case slices.Contains(set.members, p.run):
		n.member = p.run
	}
}

// foundation is how long a program waits for another one that founds the set.
const foundation = time.Second

// rest returns true after a while, or false at once when ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// overtakings is how often other programs may change the masters' records before this one leaves it to them for a while.
const overtakings = 5

// hesitation is how long the first survey waits for the last masters after a majority has answered, and any that follows one
// that had all answers. While answers are missing each waits twice as long as the one before: a master that is slow is heard of
// in the end, and one that is dead does not hold up the others for longer than endurance.
const (
	hesitation = 100 * time.Millisecond
	endurance  = 3 * time.Second
)

// portraits asks all masters who they are. One that does not answer is not waited for when a majority has, unless none of
// those that did knows of a set: a new one begins with all.
func (d *surveyor) portraits(ctx context.Context) ([]*portrait, []uint64) {
	ctx, cancel := context.WithTimeout(ctx, max(2*d.options.NodeTimeout, redisconn.DefaultTimeout))
	defer cancel()
	type answer struct {
		i int
		p *portrait
	}
	answers := make(chan answer, len(d.nodes))
	all := make([]*portrait, len(d.nodes))
	generations := make([]uint64, len(d.nodes))
	since := time.Now()
	for i, n := range d.nodes {
		generations[i] = redisconn.Generation(n.conn)
		all[i] = &portrait{err: fmt.Errorf("%w: no answer yet", driver.ErrNotSent)}
		go func() { answers <- answer{i, n.portray(ctx, since)} }()
	}
	known, patience := 0, max(d.patience, hesitation)
	d.patience = min(2*patience, endurance)
	var hesitates <-chan time.Time
	for range d.nodes {
		select {
		case a := <-answers:
			all[a.i] = a.p
			if a.p.err == nil && a.p.record.version > 0 {
				known++
			}
			if known == d.quorum {
				timer := time.NewTimer(patience)
				defer timer.Stop()
				hesitates = timer.C
			}
		case <-hesitates:
			return all, generations
		case <-ctx.Done():
			return all, generations
		}
	}
	d.patience = hesitation
	return all, generations
}

// sawOf takes in what a look shows of one master, and err, why it has no vote. One that did not answer is what it was: it may
// be slow, and what it gave to claims still counts. It reports whether the master is to be looked at again.
func (d *surveyor) sawOf(n *node, p *portrait, generation uint64, err error) (missing bool) {
	before := n.standing.Load()
	s := &standing{generation: generation, run: p.run}
	switch {
	case p.err != nil && before != nil:
		n.unanswered()
		*s = *before
		s.silent = p.err
		if n.standing.CompareAndSwap(before, s) { // else something newer is known of it
			d.report(n, before, s)
		}
		return true
	case p.err != nil:
		n.unanswered()
		s.err = fmt.Errorf("redlock: %s: %w: %w", n.name, driver.ErrNotSent, p.err)
	case p.damaged != nil:
		s.err = fmt.Errorf("redlock: %s: %w", n.name, err)
	case err != nil:
		s.err = fmt.Errorf("redlock: %s: %w: %w", n.name, driver.ErrNotSent, err)
	}
	if p.err == nil && before != nil && before.run != "" && before.run != p.run && p.condition() != voting {
		d.forgotten(n)
	}
	d.report(n, n.standing.Swap(s), s)
	return s.err != nil
}

// report logs that a master is not there with its vote, or is there again. A log that blocks must not hold up the survey.
func (d *surveyor) report(n *node, before, now *standing) {
	was := before == nil || before.err == nil && before.silent == nil
	switch log := d.options.Logger; {
	case errors.Is(now.err, errUnmade): // it is as it should be
	case was && now.err != nil:
		go log.Warn("interlock: redlock: a master has no vote", "master", n.name, "reason", now.err)
	case was && now.silent != nil:
		go log.Warn("interlock: redlock: a master does not answer", "master", n.name, "reason", now.silent)
	case !was && now.err == nil && now.silent == nil:
		go log.Info("interlock: redlock: a master has its vote again", "master", n.name)
	}
}

// masters is Masters for who surveys.
func (d *surveyor) masters(ctx context.Context) ([]driver.Master, error) {
	d.patience = endurance
	_, _, err := d.lookLocked(ctx)
	masters := make([]driver.Master, len(d.nodes))
	for i, n := range d.nodes {
		s := n.standing.Load()
		if masters[i] = (driver.Master{Name: n.name, Err: s.err}); s.silent != nil {
			masters[i].Err = fmt.Errorf("redlock: %s: %w", n.name, s.silent)
		}
	}
	return masters, err
}
