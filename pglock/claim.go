package pglock

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// state is how a claim stands, in the numbers of the schema's functions.
type state int64

const (
	out     state = iota // or nothing is known
	waiting              // in line
	held
	broken // by an operator
	gone   // was in line, and is not any more
	misfit // answers that are no state of a claim
	over
	void
)

// claim is one claim of a session. Its state only moves forward, whatever order messages and answers come in. Everything here is
// guarded by the session's mutex.
type claim struct {
	driver.Claim
	s     *session
	state state
	grant driver.Grant

	void   time.Time       // when the last request without an answer is void; zero where there is none
	asked  *ear            // that has heard since before it last asked; nil to ask again
	again  time.Time       // when it asks by itself; zero for never
	change sessions.Signal // wakes its Wait

	sessions.Departure
}

// admit moves the claim to held.
func (c *claim) admit(fence int64) {
	if c.state <= waiting {
		c.state, c.again = held, time.Time{}
		c.grant = driver.Grant{Held: true, Fence: uint64(fence)} //nolint:gosec // drawn by us
		c.change.Give()
	}
}

// end moves the claim to gone or broken.
func (c *claim) end(s state) {
	if c.state < broken {
		c.state = s
		c.change.Give()
	}
}

// nonce is what messages call a claim: see the schema's function.
func nonce(id string) string {
	sum := sha256.Sum256([]byte("interlock wake:" + id))
	return hex.EncodeToString(sum[:16])
}

// validID reports whether an ID is as driver.NewID makes them: such a one means nothing in SQL.
func validID(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(id) == 22
}
