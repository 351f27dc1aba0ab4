//go:build linux || darwin

package filelock

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// background is what goes on for a driver: calls under way, and goroutines. What they use is not closed before the last of
// them has ended.
type background struct {
	ctx    context.Context //nolint:containedctx // of everything that goes on in the background; ends with close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	closed bool // nothing begins any more
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// start runs f in a goroutine until it returns, unless b is closed.
func (b *background) start(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.tasks.Go(f)
	}
}

// after calls f when pause is over, unless b is closed by then.
func (b *background) after(pause time.Duration, f func()) {
	b.start(func() {
		t := time.NewTimer(max(pause, 0))
		defer t.Stop()
		select {
		case <-b.ctx.Done():
		case <-t.C:
			f()
		}
	})
}

// enter notes that a call is under way; leave ends that. It fails if b is closed.
func (b *background) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return layout.ErrClosed
	}
	b.tasks.Add(1)
	return nil
}

// leave ends what enter began.
func (b *background) leave() { b.tasks.Done() }

// close ends the context, and lets nothing begin.
func (b *background) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.cancel()
}
