package hub

import (
	"context"
	"sync"
	"time"
)

// The pace of the list.
const (
	shortestPace = time.Second     // from the beginning of one reading to that of the next
	paceFactor   = 10              // times how long it took, so that it costs a tenth of the time
	failurePause = 2 * time.Second // after a reading that failed
)

// How long [List.Soon] waits for a list that is being read: for the first one, without which a page
// has nothing to show, and for a newer one.
const (
	firstWait = time.Second
	nextWait  = 200 * time.Millisecond
)

// List reads the names of a store, for all who look at them. One reading at a time is under way,
// and none begins before the last one allows it. While there are viewers a goroutine begins each
// reading as it is due; otherwise Newest and Soon begin it.
type List struct {
	store   *Store
	history *History

	mu      sync.Mutex
	newest  *Snapshot     // nil before the first
	failure *Failure      // of the last reading, nil if there was none
	next    time.Time     // when a reading may begin
	reading chan struct{} // closed when the reading under way has ended; nil while there is none
	viewers map[*Mailbox]struct{}
	running bool // the goroutine for the viewers
}

func newList(s *Store, h *History) *List {
	return &List{store: s, history: h, viewers: map[*Mailbox]struct{}{}}
}

// Newest returns the newest list, nil before the first, and what is wrong with the store now. It
// reads a list that is due, and waits for that until ctx ends. A list that was cut short has its
// own error in Partial.
func (l *List) Newest(ctx context.Context) (*Snapshot, *Failure) {
	if l.store.Blind() {
		return nil, Blind()
	}
	if reading := l.begin(); reading != nil {
		select {
		case <-reading:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest, l.failure
}

// Soon is Newest for a page, which shows the list before if the reading takes long.
func (l *List) Soon(ctx context.Context) (*Snapshot, *Failure) {
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	return l.Newest(ctx)
}

func (l *List) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.newest == nil {
		return firstWait
	}
	return nextWait
}

// begin begins a reading that is due, and returns the channel that is closed at its end; that of
// the reading under way, if there is one; nil if none is due.
func (l *List) begin() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading != nil {
		return l.reading
	}
	if time.Now().Before(l.next) || l.failure.Unsupported() || !l.store.life.Go(l.read) {
		return nil
	}
	l.reading = make(chan struct{})
	return l.reading
}

// read reads the list once, and tells the viewers.
func (l *List) read() {
	ctx, cancel := context.WithTimeout(l.store.life.Context(), ListLimit)
	defer cancel()
	s := &Snapshot{At: time.Now()}
	var err error
	s.Lines, err = l.store.list(ctx)
	took := time.Since(s.At)
	if err != nil && len(s.Lines) > 0 {
		s.Partial, err = err, nil
	}
	if err == nil {
		l.history.compare(s)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.newest, l.failure, l.next = s, nil, s.At.Add(max(shortestPace, paceFactor*took))
	} else {
		l.failure, l.next = l.failure.next(s.At, err), time.Now().Add(failurePause)
	}
	close(l.reading)
	l.reading = nil
	for m := range l.viewers {
		m.put(State{List: l.newest, Failure: l.failure})
	}
}

// Follow puts every new list into m, and the newest one at once, until leave is called.
func (l *List) Follow(m *Mailbox) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store.Blind() {
		m.put(State{Failure: Blind()})
		return func() {}
	}
	l.viewers[m] = struct{}{}
	if l.newest != nil || l.failure != nil {
		m.put(State{List: l.newest, Failure: l.failure})
	}
	if !l.running {
		l.running = l.store.life.Go(l.run)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.viewers, m)
	}
}

// run reads the list whenever it is due, until nobody follows it.
func (l *List) run() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for l.wanted() {
		if reading := l.begin(); reading != nil {
			<-reading // which ends with the life at the latest
			continue
		}
		pause.Reset(max(l.due(), 0))
		select {
		case <-l.store.life.Context().Done():
		case <-pause.C:
		}
	}
}

// wanted reports whether the goroutine for the viewers is to go on.
func (l *List) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.viewers) == 0 || l.failure.Unsupported() || l.store.life.Context().Err() != nil {
		l.running = false
	}
	return l.running
}

// due is the time until the next reading.
func (l *List) due() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.next)
}
