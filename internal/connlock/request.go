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
	then   func(Reply) // called once, by whoever reads
	begins event
	over   event       // then is back
	lasts  bool        // it is awaited by whoever wants its answer
	limit  *time.Timer // until the connection is closed
}

// event is something that happens once.
type event struct {
	been bool
	told chan struct{} // closed then, where somebody waits for that
}

// happen says that it has happened. The mutex of the pipe is held, here and below.
func (e *event) happen() {
	if !e.been && e.told != nil {
		close(e.told)
	}
	e.been = true
}

// tell returns what is closed when it has happened.
func (e *event) tell() <-chan struct{} {
	if e.told == nil {
		e.told = make(chan struct{})
		if e.been {
			close(e.told)
		}
	}
	return e.told
}
