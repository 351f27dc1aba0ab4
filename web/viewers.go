package web

import (
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// state is what a viewer sees: of a list or of a name, whichever it looks at.
type state struct {
	snap    *snapshot
	line    *sight
	failure *failure // nil while the store answers
}

// sight is a line as it was seen. Nobody changes it.
type sight struct {
	driver.Line
	at time.Time // when the store was asked, or told it

	mu    sync.Mutex
	drawn map[string][]byte // as pages have it
}

// mailbox holds the newest state that its viewer has not taken yet.
type mailbox struct{ states chan state }

func newMailbox() *mailbox { return &mailbox{make(chan state, 1)} }

// put replaces what was not taken. It is called under the mutex of the hub, so that it never waits.
func (m *mailbox) put(s state) {
	select {
	case <-m.states:
	default:
	}
	m.states <- s
}

// joinList has m told of every new list, and of the newest one at once, until leave is called.
func (b *hub) joinList(m *mailbox) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.list
	if b.looks == nil {
		m.put(state{failure: &failure{err: errBlind}})
		return func() {}
	}
	if l.viewers == nil {
		l.viewers = map[*mailbox]struct{}{}
	}
	l.viewers[m] = struct{}{}
	if l.snap != nil || l.failure != nil {
		m.put(state{snap: l.snap, failure: l.failure})
	}
	if !l.running && b.h.begin() {
		l.running = true
		go b.keepReading()
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(l.viewers, m)
	}
}

// keepReading reads the list whenever it is due, until nobody looks.
func (b *hub) keepReading() {
	defer b.h.work.Done()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		b.mu.Lock()
		l := &b.list
		unsupported := l.failure != nil && errors.Is(l.failure.err, errors.ErrUnsupported)
		if len(l.viewers) == 0 || unsupported || b.h.ctx.Err() != nil {
			l.running = false
			b.mu.Unlock()
			return
		}
		reading := b.read()
		due := time.Until(l.next)
		b.mu.Unlock()
		if reading != nil {
			<-reading // which ends with the handler at the latest
			continue
		}
		pause.Reset(max(due, 0))
		select {
		case <-b.h.ctx.Done():
		case <-pause.C:
		}
	}
}
