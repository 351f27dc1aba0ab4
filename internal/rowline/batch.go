package rowline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// BatchReleaser is a [Store] that releases several claims of one line by one request. Claims often
// give up together, and the cost of a request grows with the line.
type BatchReleaser interface {
	// ReleaseBatch removes claims from the line of a name, and reports of each whether it was held
	// until now. Twice is that of an [Answer], and counts beside an error, too.
	ReleaseBatch(ctx context.Context, name string, all []Member, patience time.Duration) (was []bool, twice bool, err error)
}

// Member is a claim of a line.
type Member struct{ Session, ID string }

// mostReleased is how many claims one request releases at most.
const mostReleased = 100

// batcher releases claims that wait. At most one request of a name is in flight:
//
//	no request is in flight ──> one for this claim
//	one is ──> queue ── it is answered ──> one for all in the queue, and so on
type batcher struct {
	ctx     context.Context //nolint:containedctx // of requests for many; ends with the driver
	store   Store
	timeout time.Duration // of a request for many

	mu     sync.Mutex
	queues map[string][]*queued // by name; there is one while a request is in flight
}

// queued is a claim that waits for its request, or for the answer.
type queued struct {
	Member
	answer Answer
	err    error
	done   chan struct{} // closed when answer and err are set
}

// release makes a step that releases one claim, which waited.
func (b *batcher) release(ctx context.Context, st Step, patience time.Duration) (Answer, error) {
	if _, can := b.store.(BatchReleaser); !can {
		return b.store.Step(ctx, st, patience)
	}
	b.mu.Lock()
	queue, under := b.queues[st.Name]
	if !under {
		b.queues[st.Name] = nil
		b.mu.Unlock()
		defer b.next(st.Name)
		return b.store.Step(ctx, st, patience)
	}
	q := &queued{Member: Member{st.Session, st.Old}, done: make(chan struct{})}
	b.queues[st.Name] = append(queue, q)
	b.mu.Unlock()
	select {
	case <-q.done:
		return q.answer, q.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queues[st.Name], q); i >= 0 {
		b.queues[st.Name] = slices.Delete(b.queues[st.Name], i, i+1)
		return Answer{}, fmt.Errorf("%w: %w", driver.ErrNotSent, ctx.Err())
	}
	return Answer{}, &sessions.Underway{Cause: ctx.Err(), Over: q.done}
}

// next starts the request for the claims that were queued while the last one of their line was in
// flight.
func (b *batcher) next(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.queues[name]
	if len(queue) == 0 {
		delete(b.queues, name)
		return
	}
	n := min(len(queue), mostReleased)
	some := queue[:n:n]
	b.queues[name] = slices.Clone(queue[n:])
	go func() {
		ctx, cancel := context.WithTimeout(b.ctx, b.timeout)
		defer cancel()
		all := make([]Member, n)
		for i, q := range some {
			all[i] = q.Member
		}
		was, twice, err := b.store.(BatchReleaser).ReleaseBatch(ctx, name, all, b.timeout/2)
		if err == nil && len(was) != n {
			err = errors.New("the answer is of others")
		}
		for i, q := range some {
			if q.answer.Twice, q.err = twice, err; err == nil {
				q.answer.Was = was[i]
			}
			close(q.done)
		}
		b.next(name)
	}()
}
