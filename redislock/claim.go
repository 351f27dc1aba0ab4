package redislock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
)

type state uint8

const (
	unsent  state = iota // or answered that it is not in line
	waiting              // in line
	held
	gone   // was in line, and is not any more
	broken // by an operator
)

// claim is one claim of a session. Its state only moves forward, whatever order messages and answers come in. Everything
// here is guarded by the session's mutex.
type claim struct {
	driver.Claim
	keys keys

	state  state
	fence  uint64
	holder *driver.Holder
	news   bool      // holder is another than Acquire or Wait have told
	since  time.Time // when it was first sent
	last   time.Time // when it was first sent; zero as long as nothing has left
	count  time.Time // when its counter was last given more time, once it holds
	doubt  bool      // a request for it had no answer and may still be carried out

	ear     *ear // whose channel stands beside it in line
	recheck redisstore.Recheck
	anew    bool            // is to ask, whatever the answer to a question that is under way says: that may be older
	change  sessions.Signal // wakes its Wait; made before it stands in a line

	sessions.Departure
}

// exclusive reports whether the claim is kept as the value of the name itself.
func (c *claim) exclusive() bool { return c.Kind.Exclusive() }

// listens notes whose channel stands beside the claim from now on.
func (c *claim) listens(e *ear) {
	c.ear, c.anew = e, false
	if c.change == nil {
		c.change = sessions.NewSignal()
	}
}

// ask has a claim that waits, or is about to, ask for its state.
func (c *claim) ask() {
	if c.state <= waiting {
		c.anew, c.recheck.At = true, time.Now()
		c.change.Give()
	}
}

// deafTo reports whether a question that was asked with e's channel has put that beside the claim for nothing: the subscription has
// ended, perhaps before the claim relied on it, or the claim relies on another one by now.
func (c *claim) deafTo(e *ear) bool { return e != nil && (e != c.ear || e.Deaf()) }

func (c *claim) grant() driver.Grant {
	if c.state == held {
		return driver.Grant{Held: true, Fence: c.fence}
	}
	return driver.Grant{Holder: c.holder}
}

// admit moves the claim to held. counter is the highest of the tokens that the grant has drawn.
func (c *claim) admit(counter int64) {
	if c.state > waiting {
		return
	}
	c.state, c.holder, c.recheck = held, nil, redisstore.Recheck{}
	if c.exclusive() {
		c.fence, c.count = lowest(counter), time.Now()
	}
	c.change.Give()
}

func lowest(counter int64) uint64 { return uint64(counter) - driver.Stride + 1 } //nolint:gosec // a counter of ours

// loss is the claim as one that is lost.
func (c *claim) loss() driver.Loss {
	if c.state == broken {
		return driver.Loss{ID: c.ID, Err: driver.ErrBroken}
	}
	return driver.Loss{ID: c.ID, Err: driver.ErrGone}
}

// end moves the claim to gone or broken.
func (c *claim) end(s state) {
	if c.state < gone {
		c.state, c.fence = s, 0
		c.change.Give()
	}
}
