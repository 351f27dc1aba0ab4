package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// surveyor finds out which masters have a vote.
type surveyor struct {
	mu       sync.Mutex    // of who surveys
	patience time.Duration // for the last masters; guarded by mu, as is:
	begun    time.Time     // the last one
	giveUp   []int         // masters that an operator gives up in this survey
	refusal  error         // why they are not
	set      atomic.Pointer[agreed]
	unmade   atomic.Pointer[unmade] // the set that is not there yet, as the last survey of a driver that looks has found
	wanted   chan struct{}
	told     atomic.Int64 // when the masters were last told that the set is in use, in ns of this process
}

// agreed is a set with the votes that its masters have by now if they may, by their number.
type agreed struct {
	membership
	votes []string
}

// print is what this master's vote is in the set that the program knows.
func (n *node) print() string {
	if m := n.d.survey.set.Load(); m != nil {
		return m.votes[n.i]
	}
	return "-"
}

func (d *Driver) resurvey() {
	select {
	case d.survey.wanted <- struct{}{}:
	default:
	}
}

// Between surveys that were not called for, while a master has no vote.
const (
	soonest = 50 * time.Millisecond
	latest  = time.Second
)

// watch surveys the masters when one of them has no vote, until all have.
func (d *Driver) watch() {
	defer d.serving.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for pause := soonest; ; {
		select {
		case <-d.survey.wanted:
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
func (d *Driver) look(ctx context.Context) (_ []*portrait, missing bool, _ error) {
	d.survey.mu.Lock()
	defer d.survey.mu.Unlock()
	return d.lookLocked(ctx)
}

// lookAfter has the masters looked at, unless that was begun since, and waits for it, but not longer than patience. What calls it is
// waited for when the driver closes.
func (d *Driver) lookAfter(since time.Time, patience time.Duration) {
	done := make(chan struct{})
	d.serving.Add(1)
	go func() {
		defer d.serving.Done()
		defer close(done)
		d.survey.mu.Lock()
		defer d.survey.mu.Unlock()
		if d.survey.begun.Before(since) {
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
func (d *Driver) surveying() time.Duration {
	return 4 * max(d.options.NodeTimeout, redisconn.DefaultTimeout)
}

// lookLocked is look for who surveys.
func (d *Driver) lookLocked(ctx context.Context) (_ []*portrait, missing bool, _ error) {
	d.survey.begun = time.Now()
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
	if err != nil && d.survey.set.Load() == nil {
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
	if d.survey.unmade.Load() != nil {
		for i, n := range d.nodes {
			d.sawOf(n, all[i], generations[i], errs[i])
		}
		return all, true, nil
	}
	votes := make([]string, len(d.nodes))
	for i, n := range d.nodes {
		n.meets(all[i], set)
		votes[i] = set.vote(n.member)
	}
	d.survey.set.Store(&agreed{set, votes})
	d.survey.told.Store(int64(time.Since(epoch)))
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
func (d *Driver) portraits(ctx context.Context) ([]*portrait, []uint64) {
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
	known, patience := 0, max(d.survey.patience, hesitation)
	d.survey.patience = min(2*patience, endurance)
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
	d.survey.patience = hesitation
	return all, generations
}

// epoch is when this process began, for times of its own.
var epoch = time.Now()

// tell has the masters know that their set is in use, now and then. While no majority votes nobody can hold anything in it: it is
// not used, however many ask whether it is back, so that a new one may begin where it never will be.
func (d *Driver) tell() {
	voters := 0
	for _, n := range d.nodes {
		if n.votes() {
			voters++
		}
	}
	if voters < d.quorum {
		return
	}
	now := time.Since(epoch)
	told := d.survey.told.Load()
	if now-time.Duration(told) < d.options.MaxTTL/2 || !d.survey.told.CompareAndSwap(told, int64(now)) {
		return
	}
	ms := strconv.FormatInt(used(d.options.MaxTTL).Milliseconds(), 10)
	since := time.Now()
	for _, n := range d.nodes {
		n.give(order{
			call:  redisconn.Call{Script: memberScript, Keys: memberKeys, Args: []string{"use", n.print(), ms}},
			since: since, until: since.Add(d.options.NodeTimeout), done: func(*node, *order, any, error) {},
		})
	}
	d.resurvey() // somebody may have turned off a log, which the others must hear of before the master restarts
}
