package driver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"time"
)

// maxFenceBase is half of what tokens have: clocks in microseconds and the revisions of etcd and ZooKeeper stay within the other half,
// so that a store with a base draws no token beyond MaxFence, but for a clock behind the year 2112.
const maxFenceBase = 1 << 52

// WithFenceBase returns d with a constant added to each of its tokens, for a store that takes the place of one whose tokens were larger:
// what they protect has seen those, and would refuse the new ones for ever. What grants and lines say is with the base, and so is what
// Break takes; the store itself keeps its own numbers and knows nothing of it.
//
// All programs that lock a name want the same base, and one that never gets smaller: else of two leases the later may have the smaller
// token, and the earlier one's late write is accepted. The base is at most 2⁵². A store that draws no tokens, or raw ones, has none.
//
// d belongs to what is returned, which closes it.
func WithFenceBase(d Driver, base uint64) (Driver, error) {
	if err := checkFenceBase(base); err != nil {
		return nil, err
	}
	switch b, again := d.(*based); {
	case again:
		return nil, fmt.Errorf("driver: fence base %d on a store that is opened with one of %d: want it given once", base, b.base)
	case d.Traits().Fence == NoFence:
		return nil, fmt.Errorf("driver: fence base %d on a store that draws no tokens: want none", base)
	case d.Traits().Single:
		return nil, fmt.Errorf("driver: fence base %d on a store whose tokens are raw numbers, which others have from it as they are: want none", base)
	}
	return &based{d, base}, nil
}

func checkFenceBase(base uint64) error {
	if base > maxFenceBase {
		return fmt.Errorf("driver: fence base %d: want at most %d, so that the store's own tokens have room above it", base, uint64(maxFenceBase))
	}
	return nil
}

// based is a store with a base for its tokens.
type based struct {
	Driver
	base uint64
}

// Open implements Driver.
func (d *based) Open(ctx context.Context, spec Spec) (Session, error) {
	inner, err := d.Driver.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	s := &basedSession{inner, d}
	requeuer, requeues := inner.(Requeuer)
	inheritor, inherits := inner.(Inheritor)
	switch {
	case requeues && inherits:
		return struct {
			*basedSession
			basedRequeuer
			Inheritor
		}{s, basedRequeuer{requeuer, s}, inheritor}, nil
	case requeues:
		return struct {
			*basedSession
			basedRequeuer
		}{s, basedRequeuer{requeuer, s}}, nil
	case inherits:
		return struct {
			*basedSession
			Inheritor
		}{s, inheritor}, nil
	}
	return s, nil
}

// raise is a token of the store with the base; 0 is none.
func (d *based) raise(token uint64) uint64 {
	if token == 0 {
		return 0
	}
	return token + d.base
}

// raiseLine is a line of the store with the base.
func (d *based) raiseLine(l Line) Line {
	l.Fence, l.Claims = d.raise(l.Fence), slices.Clone(l.Claims)
	for i := range l.Claims {
		l.Claims[i].Fence = d.raise(l.Claims[i].Fence)
	}
	return l
}

// Key implements Keyer.
func (d *based) Key(name string) string {
	if k, ok := d.Driver.(Keyer); ok {
		return k.Key(name)
	}
	return name
}

// inspector is the store, if it can be looked into.
func (d *based) inspector() (Inspector, error) {
	if i, ok := d.Driver.(Inspector); ok {
		return i, nil
	}
	return nil, fmt.Errorf("driver: this store cannot be looked into: %w", errors.ErrUnsupported)
}

// Lines implements Inspector.
func (d *based) Lines(ctx context.Context, prefix string) ([]Line, error) {
	i, err := d.inspector()
	if err != nil {
		return nil, err
	}
	lines, err := i.Lines(ctx, prefix)
	raised := make([]Line, len(lines))
	for n, l := range lines {
		raised[n] = d.raiseLine(l)
	}
	return raised, err
}

// Line implements Inspector.
func (d *based) Line(ctx context.Context, name string) (Line, error) {
	i, err := d.inspector()
	if err != nil {
		return Line{Name: name}, err
	}
	l, err := i.Line(ctx, name)
	return d.raiseLine(l), err
}

// Break implements Inspector.
func (d *based) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	i, err := d.inspector()
	if err != nil {
		return err
	}
	if fence != 0 && fence <= d.base {
		return fmt.Errorf("driver: break %q: %w: no claim %s has the token %d: all are above the fence base, %d", name, ErrRefused, publicID, fence, d.base)
	}
	if fence != 0 {
		fence -= d.base
	}
	err = i.Break(ctx, name, publicID, fence, now)
	if errors.Is(err, ErrRefused) && fence != 0 {
		err = fmt.Errorf("%w (tokens without the fence base, %d)", err, d.base)
	}
	return err
}

// Prune implements Pruner.
func (d *based) Prune(ctx context.Context, prefix string, idle time.Duration) (int, error) {
	if p, ok := d.Driver.(Pruner); ok {
		return p.Prune(ctx, prefix, idle)
	}
	return 0, fmt.Errorf("driver: this store keeps nothing that can be pruned: %w", errors.ErrUnsupported)
}

// Examine implements Examiner; a store that brings no checks answers errors.ErrUnsupported.
func (d *based) Examine(ctx context.Context, e Exam) ([]Finding, error) {
	if x, ok := d.Driver.(Examiner); ok {
		return x.Examine(ctx, e)
	}
	return nil, fmt.Errorf("driver: this store brings no checks: %w", errors.ErrUnsupported)
}

// Masters implements Quorum.
func (d *based) Masters(ctx context.Context) ([]Master, error) {
	if q, ok := d.Driver.(Quorum); ok {
		return q.Masters(ctx)
	}
	return nil, errNoMasters
}

// GiveUp implements Quorum.
func (d *based) GiveUp(ctx context.Context, masters ...int) ([]Master, error) {
	if q, ok := d.Driver.(Quorum); ok {
		return q.GiveUp(ctx, masters...)
	}
	return nil, errNoMasters
}

var errNoMasters = fmt.Errorf("driver: this store has no masters that vote: %w", errors.ErrUnsupported)

// Rest implements RestFinder.
func (d *based) Rest(ctx context.Context, name string) ([]Rest, error) {
	if f, ok := d.Driver.(RestFinder); ok {
		return f.Rest(ctx, name)
	}
	return nil, errNoRest
}

// SignalRest implements RestFinder.
func (d *based) SignalRest(ctx context.Context, name string, sig os.Signal) error {
	if f, ok := d.Driver.(RestFinder); ok {
		return f.SignalRest(ctx, name, sig)
	}
	return errNoRest
}

var errNoRest = fmt.Errorf("driver: this store does not see what outlives its holder: %w", errors.ErrUnsupported)

// Watch implements Watcher; where the store does not tell, it asks.
func (d *based) Watch(ctx context.Context, name string) iter.Seq2[Line, error] {
	w, ok := d.Driver.(Watcher)
	if !ok {
		return PollLine(ctx, time.Second, func(ctx context.Context) (Line, error) { return d.Line(ctx, name) })
	}
	return func(yield func(Line, error) bool) {
		for l, err := range w.Watch(ctx, name) {
			if !yield(d.raiseLine(l), err) {
				return
			}
		}
	}
}

// basedSession is a session of such a store.
type basedSession struct {
	Session
	d *based
}

// Acquire implements Session.
func (s *basedSession) Acquire(ctx context.Context, c Claim) (Grant, error) {
	g, err := s.Session.Acquire(ctx, c)
	return s.raise(ctx, c, g, err)
}

// Wait implements Session.
func (s *basedSession) Wait(ctx context.Context, c Claim) (Grant, error) {
	g, err := s.Session.Wait(ctx, c)
	return s.raise(ctx, c, g, err)
}

// raise is the state of c with the base. What would have a token beyond MaxFence, with those that it reserves, is given back.
func (s *basedSession) raise(ctx context.Context, c Claim, g Grant, err error) (Grant, error) {
	if g.Holder != nil {
		h := *g.Holder // the driver may have it shown to others, too
		h.Fence = s.d.raise(h.Fence)
		g.Holder = &h
	}
	if err != nil || g.Fence <= MaxFence-(Stride-1)-s.d.base {
		g.Fence = s.d.raise(g.Fence)
		return g, err
	}
	beyond := fmt.Errorf("driver: token %d of the store with the fence base, %d, is beyond %d: want a smaller base, and what has seen its tokens reset: %w",
		g.Fence, s.d.base, uint64(MaxFence), ErrRefused)
	_, err = s.Session.Release(ctx, c)
	switch {
	case err == nil:
		return Grant{}, beyond
	case errors.Is(err, ErrSessionLost):
		return Grant{}, err
	}
	return Grant{}, fmt.Errorf("%s; and to give it back failed: %s", beyond.Error(), err.Error()) // so that nothing is known for certain
}

// Lost implements LossNotifier; it yields nothing where the store does not tell.
func (s *basedSession) Lost() <-chan Loss {
	if n, ok := s.Session.(LossNotifier); ok {
		return n.Lost()
	}
	return nil
}

// Nudge implements Nudger; it yields nothing where nobody nudges.
func (s *basedSession) Nudge() <-chan struct{} {
	if n, ok := s.Session.(Nudger); ok {
		return n.Nudge()
	}
	return nil
}

// basedRequeuer is what such a session has besides where the store's has.
type basedRequeuer struct {
	requeuer Requeuer
	s        *basedSession
}

// Requeue implements Requeuer.
func (r basedRequeuer) Requeue(ctx context.Context, old, next Claim) (Grant, bool, error) {
	g, held, err := r.requeuer.Requeue(ctx, old, next)
	g, err = r.s.raise(ctx, next, g, err)
	return g, held, err
}
