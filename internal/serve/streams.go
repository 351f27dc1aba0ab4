package serve

import (
	"context"
	"sync"
)

// streams are the requests under way that may be answered by a stream of events. They last for as
// long as somebody looks, so a server that is to end ends them.
type streams struct {
	mu    sync.Mutex
	last  uint64            // number of a stream
	open  map[uint64]func() // by number; each ends one
	ended bool              // all of them, and those that begin later
}

// begin returns ctx, of a request that may be answered by a stream, until the server is to end.
func (t *streams) begin(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		cancel()
	}
	t.last++
	n := t.last
	if t.open == nil {
		t.open = map[uint64]func(){}
	}
	t.open[n] = cancel
	return ctx, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, n)
	}
}

// endAll ends all streams, and lets none begin.
func (t *streams) endAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, end := range t.open {
		end()
	}
}

// count returns how many streams there are.
func (t *streams) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}
