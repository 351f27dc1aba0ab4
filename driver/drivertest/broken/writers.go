package broken

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// writers are the writers' locks of a store, one for each name.
type writers struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

func (w *writers) at(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[name] == nil {
		w.held[name] = make(chan struct{}, 1)
	}
	return w.held[name]
}

func (w *writers) lock(ctx context.Context, name string) error {
	select {
	case w.at(name) <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writers) unlock(name string) { <-w.at(name) }

func (w *writers) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.held))
}
