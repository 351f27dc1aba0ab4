package redisstore

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/redisconn"
)

// Orphans are orphaned requests: those that had no answer when their claim was released. Such a
// request may still reach the server, from a network that held it back or from the buffer of a
// server that was stopped, and take the lock for nobody. So its claim is released again for a
// while: soon at first, since most of what was held back arrives together, and never so seldom that
// it holds the lock for a second in a server that can be reached again.
type Orphans struct {
	store *Store

	mu  sync.Mutex
	all []orphan // while there is one, run is running
}

type orphan struct {
	release redisconn.Call
	until   time.Time
}

// NewOrphans returns Orphans without any.
func NewOrphans(store *Store) *Orphans { return &Orphans{store: store} }

// Add runs release, which is idempotent, at least once, and repeats it until stay is over.
func (o *Orphans) Add(release redisconn.Call, stay time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, orphan{release, time.Now().Add(stay)})
	if len(o.all) == 1 {
		go o.run()
	}
}

// run releases the claims of orphans until none is left.
func (o *Orphans) run() {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 400*time.Millisecond) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-o.store.Ctx.Done():
			timer.Stop()
			return
		}
		o.mu.Lock()
		calls := make([]redisconn.Call, len(o.all))
		for i, one := range o.all {
			calls[i] = one.release
		}
		o.mu.Unlock()
		_, _ = Together(o.store.Ctx, o.store.Run, o.store.Timeout, calls)
		if o.expire(len(calls), time.Now()) {
			return
		}
	}
}

// expire drops those of the first n, whose claims were released just now, whose time is over. It
// reports whether none is left.
func (o *Orphans) expire(n int, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	var left []orphan
	for i, one := range o.all {
		if i >= n || now.Before(one.until) {
			left = append(left, one)
		}
	}
	o.all = left
	return len(left) == 0
}
