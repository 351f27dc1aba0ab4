package web

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// state is what a viewer sees: of a list or of a name, whichever it looks at.
type state struct {
	snap    *snapshot
	line    *sight
	failure *failure // nil while the store answers
}

// sight is a line as it was seen.
type sight struct {
	driver.Line
	at time.Time // when the store was asked, or told it
}

// mailbox holds the newest state that its viewer has not taken yet.
type mailbox struct{ states chan state }

func newMailbox() *mailbox { return &mailbox{make(chan state, 1)} }

// put replaces what was not taken. It never waits: of two who put at the same time, one is under the hub's mutex.
func (m *mailbox) put(s state) {
	select {
	case <-m.states:
	default:
	}
	m.states <- s
}
