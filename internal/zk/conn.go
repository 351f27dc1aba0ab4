package zk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// An Event is a change of a node that was watched, which ends the watch.
type Event struct {
	Path string
	Type int32
}

// The types of events.
const (
	Created         int32 = 1
	Deleted         int32 = 2
	DataChanged     int32 = 3
	ChildrenChanged int32 = 4
)

// maxFrame bounds an answer: the names of a million children.
const maxFrame = 64 << 20

// conn is one connection of a session.
type conn struct {
	nc       net.Conn
	patience time.Duration   // how long an answer may take while nothing else comes
	all      *sync.WaitGroup // of the client's goroutines

	mu      sync.Mutex
	out     record  // still to be written
	writing bool    // somebody writes; what comes meanwhile goes with the next flight
	pending []*Call // without an answer, in the order in which they were sent
	xid     int32
	over    bool
}

// send sends calls in one flight: from the caller's own goroutine, which saves a wake-up, unless somebody writes just now. It blocks while the server takes nothing, and for
// no longer than the patience. It reports false where the connection is over.
func (cn *conn) send(calls []*Call) bool {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.over {
		return false
	}
	if len(cn.pending) == 0 {
		_ = cn.nc.SetReadDeadline(time.Now().Add(cn.patience))
	}
	for _, c := range calls {
		cn.xid++
		c.xid = cn.xid
		cn.out = append(cn.out.int(int32(8+len(c.body))).int(c.xid).int(c.op), c.body...)
	}
	cn.pending = append(cn.pending, calls...)
	if cn.writing {
		return true
	}
	cn.writing = true
	cn.write()
	if cn.writing = len(cn.out) > 0 && !cn.over; cn.writing {
		cn.all.Go(cn.rest) // it is others': in a crowd this caller would never be done with it
	}
	return true
}

// write writes what is in out. cn.mu is held, but for the time of writing.
func (cn *conn) write() {
	out := cn.out
	cn.out = nil
	cn.mu.Unlock()
	_ = cn.nc.SetWriteDeadline(time.Now().Add(cn.patience))
	if _, err := cn.nc.Write(out); err != nil {
		_ = cn.nc.Close() // ends read
	}
	cn.mu.Lock()
}

// rest writes until nothing is left.
func (cn *conn) rest() {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	for len(cn.out) > 0 && !cn.over {
		cn.write()
	}
	cn.writing = false
}

// read takes in answers and events until the connection ends, and says why it has.
func (cn *conn) read(seen func(zxid int64), event func(Event)) error {
	in := bufio.NewReaderSize(cn.nc, 8<<10)
	for {
		b, err := readFrame(in)
		if err != nil {
			var t net.Error
			if errors.As(err, &t) && t.Timeout() {
				err = fmt.Errorf("no answer for %v", cn.patience)
			}
			return err
		}
		r := &reader{b: b}
		xid, zxid, code := r.int(), r.long(), Code(r.int())
		if xid == -1 {
			e := Event{Type: r.int()}
			r.int() // the state of the session, which the connection says
			e.Path = r.string()
			if r.bad {
				return errGarbled
			}
			if e.Path != "" {
				event(e)
			}
			continue
		}
		if zxid > 0 {
			seen(zxid)
		}
		c := cn.next(xid)
		if c == nil {
			return errGarbled
		}
		if !c.answer(code, r) {
			c.fail(fmt.Errorf("%w: %w", ErrUnanswered, errGarbled))
			return errGarbled
		}
		if code == SessionMoved || code == SessionExpired {
			return code
		}
	}
}

var errGarbled = errors.New("the server's answer makes no sense")

// next returns the call that is answered now.
func (cn *conn) next(xid int32) *Call {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if len(cn.pending) == 0 || cn.pending[0].xid != xid {
		return nil
	}
	c := cn.pending[0]
	cn.pending[0] = nil
	cn.pending = cn.pending[1:]
	var until time.Time
	if len(cn.pending) > 0 {
		until = time.Now().Add(cn.patience)
	}
	_ = cn.nc.SetReadDeadline(until)
	return c
}

// end ends the connection; what it has not answered fails.
func (cn *conn) end(why error) {
	cn.mu.Lock()
	cn.over = true
	pending := cn.pending
	cn.pending = nil
	cn.mu.Unlock()
	_ = cn.nc.Close()
	for _, c := range pending {
		c.fail(fmt.Errorf("%w: %w", ErrUnanswered, why))
	}
}

// readFrame reads a record that stands behind its length.
func readFrame(in io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, errGarbled
	}
	b := make([]byte, n)
	_, err := io.ReadFull(in, b)
	return b, err
}
