package connlock

import "time"

// Query is one statement, and its arguments where the wire has such.
type Query struct {
	SQL   string
	Args  [][]byte
	Tells bool // that it begins, where the wire can, since it may last
}

// Reply is the answer to a query.
type Reply struct {
	Field string // the first one of the last statement that had rows
	Err   error
}

// request is a query that was sent.
type request struct {
	then   func(Reply) // called once, by the reader
	begins event
	over   event       // then is back
	lasts  bool        // its answer is read when somebody awaits it
	limit  *time.Timer // until the connection is closed
}

// event happens once.
type event struct {
	been bool
	told chan struct{} // closed then, where somebody waits for that
}

// happen marks e as happened. The mutex of the pipe is held, here and below.
func (e *event) happen() {
	if !e.been && e.told != nil {
		close(e.told)
	}
	e.been = true
}

// tell returns a channel that is closed when e has happened.
func (e *event) tell() <-chan struct{} {
	if e.told == nil {
		e.told = make(chan struct{})
		if e.been {
			close(e.told)
		}
	}
	return e.told
}
