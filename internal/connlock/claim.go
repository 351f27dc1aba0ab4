package connlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/internal/sessions"
)

// claim is a claim and the connection that it lives with. The mutex of the pool guards it.
type claim struct {
	Lock
	conn    *conn // has the lock, or is asked for it; nil if none is
	state   state
	fence   uint64
	unheard bool // it was not held when the last Renew began, which has not extended its time
	sessions.Departure
}

type state uint8

// The states of a claim, which moves down the list.
const (
	out     state = iota // not in line, as far as is known
	waiting              // the server shows that it waits
	held
	gone
)

func (l *claim) move(to state, fence uint64) { l.state, l.fence = to, fence }

// conn is a connection and the claims that it has, or is asked for. The mutex of the pool guards
// it.
type conn struct {
	Conn
	single  bool              // for one claim at a time, which waits or has waited
	claims  map[string]*claim // by key
	blocked bool              // in a Wait
	ended   bool
}

// pause gives a Wait time to get to its place, or to be answered, before the next look. At first it
// returns as soon as the server carries the Wait out: then that takes no longer than a look does,
// and no timer is that short.
func (c *conn) pause(ctx context.Context, looks int) error {
	const atOnce = 4
	if looks <= atOnce {
		return c.Begins(ctx)
	}
	shortly, cancel := context.WithTimeout(ctx, min(time.Duration(looks-atOnce)*time.Millisecond, 20*time.Millisecond))
	defer cancel()
	_ = c.Await(shortly)
	return ctx.Err()
}
