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
	writing bool    // a goroutine writes; what is sent meanwhile goes with its next flight
	pending []*Call // without an answer, in the order in which they were sent
	xid     int32
	over    bool
}

// send sends calls in one flight, from the caller's own goroutine, which saves a wake-up, unless
// another one is writing. It blocks while the server takes nothing, for the patience at most. It
// reports false if the connection is over.
//
//	nobody writes: send writes its calls; if more came meanwhile a goroutine writes those, and so on
//	somebody writes: send leaves its calls in out
func (cn *conn) send(calls []*Call) bool {
	first, ok := cn.enqueue(calls)
	if first == nil {
		return ok
	}
	cn.write(first)
	if rest := cn.next(); rest != nil {
		// They are others' calls: under load this caller would never be done with them.
		cn.all.Go(func() { cn.writeAll(rest) })
	}
	return true
}

// enqueue adds calls to what is to be written. If nobody writes it returns all of that, for the
// caller to write. It reports false if the connection is over.
func (cn *conn) enqueue(calls []*Call) (out record, ok bool) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.over {
		return nil, false
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
		return nil, true
	}
	cn.writing = true
	out, cn.out = cn.out, nil
	return out, true
}

// next returns what was added while the caller wrote, for it to write, or nil: then it writes no
// more.
func (cn *conn) next() (out record) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if !cn.over {
		out, cn.out = cn.out, nil
	}
	cn.writing = out != nil
	return out
}

func (cn *conn) write(out record) {
	_ = cn.nc.SetWriteDeadline(time.Now().Add(cn.patience))
	if _, err := cn.nc.Write(out); err != nil {
		_ = cn.nc.Close() // ends read
	}
}

func (cn *conn) writeAll(out record) {
	for ; out != nil; out = cn.next() {
		cn.write(out)
	}
}

// read reads answers and events until the connection ends, and returns why it has.
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
		c := cn.answered(xid)
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

// answered returns the call of the next answer, if that has its number, or nil.
func (cn *conn) answered(xid int32) *Call {
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

// end ends the connection. Calls without an answer fail.
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

// readFrame reads a record behind its length.
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
