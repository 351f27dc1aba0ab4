package wire

import (
	"math/rand/v2"
	"sync"
	"time"
)

// way is one direction of all connections: what is done to its bytes, and their count.
type way struct {
	direction Direction

	mu     sync.Mutex
	stalls int
	open   chan struct{} // closed while there is no stall
	delay  time.Duration
	jitter time.Duration
	drop   func(Direction, []byte) bool
	keep   func([]byte) bool
	mute   func([]byte) bool // nil where no connection is to be silenced
	kept   *kept             // nil where no request is to be held
	flow   Flow
}

func newWay(d Direction) *way {
	w := &way{direction: d, open: make(chan struct{})}
	close(w.open)
	return w
}

// each calls f for the ways of the direction.
func (w *Wire) each(d Direction, f func(*way)) {
	for _, way := range w.ways {
		if way.direction&d != 0 {
			way.mu.Lock()
			f(way)
			way.mu.Unlock()
		}
	}
}

// Stall holds back everything that goes this way, the ends of connections included, until heal is
// called; then it is all delivered, in order. New connections are accepted and stalled as well. Of
// overlapping stalls the last to heal counts; calling heal again does nothing.
func (w *Wire) Stall(d Direction) (heal func()) {
	w.each(d, func(way *way) {
		if way.stalls++; way.stalls == 1 {
			way.open = make(chan struct{})
		}
	})
	return sync.OnceFunc(func() {
		w.each(d, func(way *way) {
			if way.stalls--; way.stalls == 0 {
				close(way.open)
			}
		})
	})
}

// Delay lets every packet arrive d later plus a random part of jitter, without lowering how many
// are on their way; zero ends it. The order inside a connection stays.
func (w *Wire) Delay(d, jitter time.Duration) {
	w.each(Both, func(way *way) { way.delay, way.jitter = d, jitter })
}

// Drop swallows the packets for which match is true; nil ends it. A packet is what one read of the
// wire brought: mostly what the sender wrote at once, but the kernel may join or part it; Filter
// sees whole frames. match may be called concurrently and must not keep the packet.
func (w *Wire) Drop(match func(d Direction, packet []byte) bool) {
	w.each(Both, func(way *way) { way.drop = match })
}

// Filter passes only those RESP frames of the direction for which keep is true; nil ends it. A
// frame is a whole reply, a whole push or a whole request, and it is held until its last byte is
// there. A frame that has begun to pass, and a stream that is not RESP, pass. keep may be called
// concurrently and must not keep the frame.
func (w *Wire) Filter(d Direction, keep func(frame []byte) bool) {
	w.each(d, func(way *way) { way.keep = keep })
}

// Silence has the connection of the first request for which match is true bring nothing more,
// either way, that request included: it has died and nobody knows. The others go on, and new ones
// work. What it returns is closed when a connection was silenced. A later call takes the place of
// one that has not met its request. match must not keep the packet.
func (w *Wire) Silence(match func(packet []byte) bool) (silenced <-chan struct{}) {
	done := make(chan struct{})
	w.each(Requests, func(way *way) {
		way.mute = func(packet []byte) bool {
			if !match(packet) {
				return false
			}
			close(done)
			return true
		}
	})
	return done
}

// silences reports whether a packet ends what its connection brings.
func (w *way) silences(packet []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mute == nil || !w.mute(packet) {
		return false
	}
	w.mute = nil
	return true
}

// kept is the request that Hold holds.
type kept struct {
	match   func([]byte) bool
	met     bool
	deliver chan struct{} // closed when it may pass
}

// Hold holds the first request for which match is true, with all that follows it on its connection,
// until deliver is called, which reports whether there was one. Then it arrives, also where its
// client has closed the connection. Other connections pass, those that are made meanwhile included.
// A later call takes the place of one that has not met its request. match must not keep the packet.
func (w *Wire) Hold(match func(packet []byte) bool) (deliver func() bool) {
	k := &kept{match: match, deliver: make(chan struct{})}
	w.each(Requests, func(way *way) { way.kept = k })
	open := sync.OnceFunc(func() { close(k.deliver) })
	return func() (met bool) {
		w.each(Requests, func(way *way) {
			if met = k.met; way.kept == k {
				way.kept = nil
			}
		})
		open()
		return met
	}
}

// keepBack waits with a packet that is held, until it may pass or the connection is over.
func (w *way) keepBack(packet []byte, over <-chan struct{}) {
	w.mu.Lock()
	k := w.kept
	if k == nil || len(packet) == 0 || !k.match(packet) {
		w.mu.Unlock()
		return
	}
	w.kept, k.met = nil, true
	w.mu.Unlock()
	select {
	case <-k.deliver:
	case <-over:
	}
}

// screen returns what Drop and Filter leave of a packet, in memory of its own.
func (w *way) screen(f *framer, b []byte) []byte {
	w.mu.Lock()
	drop, keep := w.drop, w.keep
	w.mu.Unlock()
	if len(b) == 0 {
		return nil
	}
	whole := true
	out := f.filter(b, func(frame []byte) bool {
		if keep == nil || keep(frame) {
			return true
		}
		whole = false
		return false
	}, keep != nil)
	if len(out) > 0 && drop != nil && drop(w.direction, out) {
		whole, out = false, nil
	}
	if !whole {
		w.mu.Lock()
		w.flow.Dropped++
		w.mu.Unlock()
	}
	return out
}

func (w *way) due() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := time.Now().Add(w.delay)
	if w.jitter > 0 {
		due = due.Add(rand.N(w.jitter))
	}
	return due
}

// pass waits until the packet is due and the way is open, and counts it. False if the connection is
// over before.
func (w *way) pass(p packet, over <-chan struct{}) bool {
	if d := time.Until(p.due); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-over:
			return false
		}
	}
	for {
		w.mu.Lock()
		if w.stalls == 0 {
			// Counted in the step that sees the way open, and before the receiver can have it: a
			// reply that has arrived is counted, and after Stall returns no packet is counted until
			// it heals.
			if len(p.data) > 0 {
				w.flow.Held--
				w.flow.Packets++
				w.flow.Bytes += int64(len(p.data))
			}
			w.mu.Unlock()
			return true
		}
		open := w.open
		w.mu.Unlock()
		select {
		case <-open:
		case <-over:
			return false
		}
	}
}
