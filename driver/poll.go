package driver

import (
	"context"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"
)

// Poll is the Wait of a store that cannot tell: it looks again after shortest, then ever later up to longest, with a
// fifth of jitter so that processes do not march in step, until the claim is held, look fails, or ctx ends.
func Poll(ctx context.Context, shortest, longest time.Duration, look func(context.Context) (Grant, error)) (Grant, error) {
	t := time.NewTimer(0)
	defer t.Stop()
	for pause := shortest; ; pause = min(2*pause, longest) {
		t.Reset(pause + time.Duration(rand.Int64N(int64(pause)/5+1)))
		select {
		case <-ctx.Done():
			return Grant{}, ctx.Err()
		case <-t.C:
		}
		if g, err := look(ctx); err != nil || g.Held {
			return g, err
		}
	}
}

// PollLine is the Watch of a store that cannot tell: it looks once in every period and yields the first line and each
// that is different from the one before. That a claim was renewed is no difference. What look or ctx ends with is
// yielded last.
func PollLine(ctx context.Context, period time.Duration, look func(context.Context) (Line, error)) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		t := time.NewTicker(period)
		defer t.Stop()
		var shown Line
		for first := true; ; first = false {
			l, err := look(ctx)
			if err != nil {
				yield(Line{}, err)
				return
			}
			if (first || !l.shows(shown)) && !yield(l, nil) {
				return
			}
			shown = l
			select {
			case <-ctx.Done():
				yield(Line{}, ctx.Err())
				return
			case <-t.C:
			}
		}
	}
}

// shows reports whether two looks at a line show the same, but for the ends of claims, which every renewal moves.
func (l Line) shows(other Line) bool {
	timeless := func(claims []Holder) []Holder {
		claims = slices.Clone(claims)
		for i := range claims {
			claims[i].Until = time.Time{}
		}
		return claims
	}
	l.Claims, other.Claims = timeless(l.Claims), timeless(other.Claims)
	return reflect.DeepEqual(l, other)
}
