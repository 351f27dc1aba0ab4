package redissonlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// place is what the claims of a room want: for one of them that holds alone nothing is different from another.
type place struct {
	name string
	kind driver.Kind
}

// room is where the claims of this process wait for one place. One of them asks for all: when a message says that the
// place may be free, or when the time of the hold that stands in the way is over. What it was told, all know. Everything
// here is guarded by the driver's mutex.
//
// turn moves with every message, and whenever one may have been lost. asked is the turn up to which an answer that came
// since says "not free". So a message that comes while somebody asks is not lost, and whoever gives up asking leaves the
// turn to the others.
type room struct {
	d       *Driver
	place   place
	channel string
	ear     *ear // that listens for it; nil: nobody does
	inside  map[*claim]struct{}
	empty   time.Time // since when nobody waits

	turn, asked uint64
	asking      bool
	at          time.Time     // when to ask by time alone; zero: a message or a renewal will say
	changed     chan struct{} // closed, and another made, when the rest changes
}

// linger is how long a room that nobody waits in goes on listening: under contention there is always a next one.
const linger = time.Second

// room returns the room for c, and makes it if it is missing. d.mu is held.
func (d *Driver) room(c *claim) *room {
	p := place{c.Name, c.Kind}
	r := d.rooms[p]
	if r == nil {
		r = &room{d: d, place: p, channel: c.keys.channel(c.Kind), inside: map[*claim]struct{}{}, empty: time.Now(), changed: make(chan struct{})}
		d.rooms[p] = r
		d.sweepLater()
	}
	return r
}

// enter has c wait here. d.mu is held.
func (r *room) enter(c *claim) {
	c.room = r
	r.inside[c] = struct{}{}
}

func (r *room) leave(c *claim, now time.Time) {
	delete(r.inside, c)
	if len(r.inside) == 0 {
		r.empty = now
		r.d.sweepLater()
	}
}

// tell wakes all who wait here.
func (r *room) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// stir says that the place may be free.
func (r *room) stir() {
	r.turn++
	r.tell()
}

// listens reports whether every message will be heard.
func (r *room) listens() bool { return r.ear != nil && !r.ear.Deaf() }

// due reports whether it is time to ask.
func (r *room) due(now time.Time) bool {
	return !r.listens() || r.asked < r.turn || !r.at.IsZero() && !now.Before(r.at)
}

// begin reports whether the caller is to ask now.
func (r *room) begin() bool {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.asking || !r.due(time.Now()) {
		return false
	}
	r.asking = true
	return true
}

// done says that who asked has an answer, or an error: then the next question follows after a moment.
func (r *room) done(err error) {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	r.asking = false
	if err != nil {
		r.asked, r.at = r.turn, time.Now().Add(10*time.Millisecond)
	}
	r.tell()
}

// occupied takes in an answer to a question that began at a turn: the place is taken for so long, or, where left is
// negative, until a message.
func (r *room) occupied(seen uint64, left time.Duration) {
	r.asked = max(r.asked, seen)
	r.at = time.Time{}
	if left >= 0 {
		r.at = time.Now().Add(left + time.Millisecond) // the server's clock ticks in milliseconds
	}
	r.tell()
}

// sweepLater has rooms closed that nobody waits in. d.mu is held.
func (d *Driver) sweepLater() {
	if !d.sweeping {
		d.sweeping = true
		d.sweeper.Reset(linger)
	}
}

// sweep closes them.
func (d *Driver) sweep() {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweeping = false
	for p, r := range d.rooms {
		switch {
		case len(r.inside) > 0 || r.asking:
		case now.Sub(r.empty) < linger:
			d.sweepLater()
		default:
			delete(d.rooms, p)
			for _, e := range d.ears { // also one where it was to be heard, and nobody waited for that to be confirmed
				e.drop(r)
			}
		}
	}
}
