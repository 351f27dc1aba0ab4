package redlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

type state uint8

const (
	unsent  state = iota // or answered that it is not in line
	waiting              // in the line of a majority, or of as many as could be reached
	held
	gone   // was held, and is not any more
	broken // by an operator
)

// claim is one claim of a session. Its state only moves forward, whatever order messages and
// answers of the masters come in. Everything here is guarded by the session's mutex.
type claim struct {
	driver.Claim
	keys   keys
	all    []string // keys of the long script
	ticket string   // its place in line, the same on all masters, in 16 digits
	info   string   // for people

	state   state
	token   int64     // the highest of the tokens that it reserved, or is being raised to
	raising bool      // it has a majority, and gets one token to hold there
	agreeBy time.Time // until when it waits for masters that need no raise
	wrote   bool      // since it is raising: its token, where the counter was lower
	nodes   []nodeState
	stands  string // the value at the name that a master answered last

	// need is what the core counts the claim's trust from, if the call under way is answered: it is
	// held when a majority of masters was given or renewed after that.
	need      time.Time
	kept      time.Time       // the start of the last call by which a majority held it
	begun     bool            // something has left for it
	acquiring *inflight       // of its Acquire, which anything may end
	change    sessions.Signal // wakes its Wait

	others  bool // stood in line when it left
	leaving bool // no request but those of a Release from now on
	left    bool // it is released, and held says whether it was held
	held    bool
}

// nodeState is what one master says of a claim.
type nodeState struct {
	has     bool      // the claim has this master
	counter int64     // of the grant that gave it, or of its raise
	void    int64     // grants up to this counter were given back: late news of them are nothing new
	from    time.Time // when its time runs from, or earlier
	joined  time.Time // where it does not count yet: the start of the last renewal that took it in, or found it waiting for its vote
	known   time.Time // when the last question was given that it has answered

	pending  int  // questions under way
	raising  bool // under way
	yielding bool // under way
	asked    bool // to yield, and has not done so since
	doubt    bool // a request had no answer, and may still be carried out
	begun    bool // a script has failed when it had begun, and what it did may stand

	recheck redisstore.Recheck
	anew    bool // is to ask, whatever the answer to a question that is under way says: that may be older
	left    int8 // since the Release: 1 it had this master until then, -1 it had not, 0 not known

	refused error // what the master said last, if it refuses the claim for good
}

// Depart implements sessions.Leaver.
func (c *claim) Depart() { c.leaving = true }

func (c *claim) grant(said *redisstore.Reader) driver.Grant {
	if c.state == held {
		return driver.Grant{Held: true, Fence: lowest(c.token)}
	}
	return driver.Grant{Holder: holderOf(c.stands, said)}
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
		c.state = s
		c.change.Give()
	}
}

// has counts the masters that the claim has, and has had since it was held.
func (c *claim) has() (n int) {
	for i := range c.nodes {
		if c.nodes[i].has && c.unbroken(&c.nodes[i]) {
			n++
		}
	}
	return n
}

// unbroken reports whether the claim had a master all the time that it was held, or since it was
// taken in while a majority held the claim without it: a renewal that began no earlier has
// succeeded then, and up to its end nobody else held the name.
func (c *claim) unbroken(s *nodeState) bool { return !s.joined.After(c.kept) }

// good counts the masters on which the token holds under the claim's ID, and which were given or
// renewed since a time that is not over.
func (c *claim) good(since time.Time, valid time.Duration) (n int) {
	for i := range c.nodes {
		if s := &c.nodes[i]; s.joined.IsZero() && s.good(c.token, since, valid) {
			n++
		}
	}
	return n
}

// renewed notes that the claim was renewed on a master that it has. One that was taken in counts
// from now on if nothing is left that could count against it: nobody held the name up to the start
// of the last renewal that succeeded, whose time is not over yet; the key is there since before
// that; and the master votes, so whatever it forgot when it restarted is over.
func (c *claim) renewed(s *nodeState, since time.Time, votes bool, valid time.Duration) {
	if votes && c.unbroken(s) && time.Since(c.kept) < valid {
		s.joined = time.Time{}
	}
	if s.joined.IsZero() && since.After(s.from) {
		s.from = since
	}
}

func (s *nodeState) good(token int64, since time.Time, valid time.Duration) bool {
	return s.has && s.counter >= token && !s.from.Before(since) && time.Since(s.from) < valid
}

// given notes that the master has given itself to the claim, by an answer or by a message. News of
// a grant that was given back since is old: each grant of a master has a larger counter.
func (s *nodeState) given(counter int64, from time.Time) {
	if counter <= s.void {
		return
	}
	s.has, s.recheck = true, redisstore.Recheck{}
	s.counter = max(s.counter, counter)
	if from.After(s.from) {
		s.from = from
	}
}

// asks lets a claim that waits, or is about to, ask a master for its state now.
func (c *claim) asks(n *node) {
	ns := &c.nodes[n.i]
	ns.anew, ns.recheck.At = true, time.Now()
	c.change.Give()
}

// failed notes that a request failed, or did not where err is nil.
func (s *nodeState) failed(err error) {
	if redisconn.InScript(err) {
		s.begun = true
	} else if err != nil && uncertain(err) {
		s.doubt = true
	}
}

// lacks notes that the claim does not have the master as of a counter. A grant of which a message
// told before may be newer.
func (s *nodeState) lacks(counter int64) {
	if s.has && s.counter <= counter {
		s.has, s.void = false, max(s.void, s.counter)
	}
}

// value is what a claim writes at the name; channel is that of its process at one master.
func (c *claim) value(channel string) string {
	return layout + c.ID + "-" + c.ticket + " " + channel + " " + c.info
}
