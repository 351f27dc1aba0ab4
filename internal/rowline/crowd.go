package rowline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// Crowd is a [Store] that takes claims which give up together out of their line by one request: what that costs grows with the line, in which
// all of them stand.
type Crowd interface {
	// Leave has claims leave the line of a name, and reports of each whether it was held until now. Twice is that of an [Answer], and counts
	// beside an error, too.
	Leave(ctx context.Context, name string, all []Leaver, patience time.Duration) (was []bool, twice bool, err error)
}

// Leaver is a claim that leaves.
type Leaver struct{ Session, ID string }

// mostLeave by one request.
const mostLeave = 100

// leaving is one that waits for its request, or for the answer.
type leaving struct {
	Leaver
	answer Answer
	err    error
	over   chan struct{} // closed behind answer and err
}

// leave has a claim that waits leave its line. One request of a name is under way at a time; who comes meanwhile leaves by the next:
//
//	no request is under way ──> one for this claim
//	one is ──> queue ── it is over ──> one for all who queue, and so on
func (d *Sessions) leave(ctx context.Context, st Step, patience time.Duration) (Answer, error) {
	if _, can := d.Store.(Crowd); !can {
		return d.Store.Step(ctx, st, patience)
	}
	d.mu.Lock()
	queue, under := d.leaving[st.Name]
	if !under {
		d.leaving[st.Name] = nil
		d.mu.Unlock()
		defer d.leaveNext(st.Name)
		return d.Store.Step(ctx, st, patience)
	}
	l := &leaving{Leaver: Leaver{st.Session, st.Old}, over: make(chan struct{})}
	d.leaving[st.Name] = append(queue, l)
	d.mu.Unlock()
	select {
	case <-l.over:
		return l.answer, l.err
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.leaving[st.Name], l); i >= 0 {
		d.leaving[st.Name] = slices.Delete(d.leaving[st.Name], i, i+1)
		return Answer{}, fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	return Answer{}, &sessions.Underway{Cause: ctx.Err(), Over: l.over}
}

// leaveNext has those leave who came while a request for their line was under way.
func (d *Sessions) leaveNext(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.leaving[name]
	if len(queue) == 0 {
		delete(d.leaving, name)
		return
	}
	n := min(len(queue), mostLeave)
	some := queue[:n:n]
	d.leaving[name] = slices.Clone(queue[n:])
	go func() {
		ctx, cancel := context.WithTimeout(d.ctx, d.Timeout)
		defer cancel()
		all := make([]Leaver, n)
		for i, l := range some {
			all[i] = l.Leaver
		}
		was, twice, err := d.Store.(Crowd).Leave(ctx, name, all, d.Timeout/2)
		if err == nil && len(was) != n {
			err = errors.New("the answer is of others")
		}
		for i, l := range some {
			if l.answer.Twice, l.err = twice, err; err == nil {
				l.answer.Was = was[i]
			}
			close(l.over)
		}
		d.leaveNext(name)
	}()
}
