package zk

import "context"

// The requests, by the numbers of the protocol.
const (
	opCreate          = 1
	opDelete          = 2
	opGet             = 4
	opSet             = 5
	opSync            = 9
	opChildren2       = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opCloseSession    = -11
	opError           = -1 // in the answer to a Multi
)

// Mode says what becomes of a node that is created.
type Mode int32

// The modes. A container goes by itself some time after its last child.
const (
	Persistent          Mode = 0
	Ephemeral           Mode = 1
	EphemeralSequential Mode = 3
	Container           Mode = 4
)

// A Call is one request and its answer, which may be read after Done is closed.
type Call struct {
	op    int32
	xid   int32
	body  record
	read  func(*Call, *reader)
	parts []*Call
	done  chan struct{}

	Err      error // the Code, or why there is no answer
	Code     Code  // 0 unless the server has refused it
	Path     string
	Data     []byte
	Children []string
	Stat     Stat
}

func newCall(op int32, body record, read func(*Call, *reader)) *Call {
	return &Call{op: op, body: body, read: read, done: make(chan struct{})}
}

// Asked returns the path of a [Get].
func (c *Call) Asked() string { return (&reader{b: c.body}).string() }

// Done is closed when the call has its answer, or none will come.
func (c *Call) Done() <-chan struct{} { return c.done }

// Wait returns when the call is answered, with what [Call.Err] says then, or when ctx ends.
func (c *Call) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.Err
	default:
	}
	select {
	case <-c.done:
		return c.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// An ACL says who may read and write a node.
type ACL uint8

// The access lists.
const (
	Anyone   ACL = iota
	Creators     // clients that have logged in as the one that makes it
)

// Create makes a node. The answer is its path, which ends in a number if it is sequential, and its
// Stat.
func Create(path string, data []byte, mode Mode, acl ACL) *Call {
	const all = 31 // rights: read, write, create, delete, admin
	body := record{}.string(path).bytes(data).int(1).int(all)
	if acl == Creators {
		body = body.string("auth").string("")
	} else {
		body = body.string("world").string("anyone")
	}
	body = body.int(int32(mode))
	op := int32(opCreate2)
	if mode == Container {
		op = opCreateContainer
	}
	return newCall(op, body, func(c *Call, r *reader) { c.Path, c.Stat = r.string(), r.stat() })
}

// Delete removes a node of that version, or of any version if it is -1.
func Delete(path string, version int32) *Call {
	return newCall(opDelete, record{}.string(path).int(version), func(*Call, *reader) {})
}

// Get reads the data of a node and its Stat. If watch is true and there is the node, its next
// change is told.
func Get(path string, watch bool) *Call {
	return newCall(opGet, record{}.string(path).bool(watch), func(c *Call, r *reader) { c.Data, c.Stat = r.bytes(), r.stat() })
}

// Check changes nothing: a [Multi] with it fails unless there is a node of that version, or of any
// version if it is -1.
func Check(path string, version int32) *Call {
	return newCall(opCheck, record{}.string(path).int(version), func(*Call, *reader) {})
}

// Set replaces the data of a node of that version, or of any version if it is -1. The answer is its
// Stat.
func Set(path string, data []byte, version int32) *Call {
	return newCall(opSet, record{}.string(path).bytes(data).int(version), func(c *Call, r *reader) { c.Stat = r.stat() })
}

// Children reads the names of a node's children, in no order, and its Stat. If watch is true the
// next change of them is told.
func Children(path string, watch bool) *Call {
	return newCall(opChildren2, record{}.string(path).bool(watch), func(c *Call, r *reader) { c.Children, c.Stat = r.strings(), r.stat() })
}

// Sync is answered when the server has all changes that the leader had.
func Sync(path string) *Call {
	return newCall(opSync, record{}.string(path), func(c *Call, r *reader) { c.Path = r.string() })
}

func closeSession() *Call { return newCall(opCloseSession, nil, func(*Call, *reader) {}) }

// Multi carries out all calls or none. Each has an answer of its own; the answer of the whole is
// the first that failed. A node that is created has no Stat in the answer: servers of 3.8 answer as
// to the oldest kind of request.
func Multi(calls ...*Call) *Call {
	var body record
	for _, c := range calls {
		body = append(body.int(c.op).bool(false).int(-1), c.body...)
	}
	m := newCall(opMulti, body.int(-1).bool(true).int(-1), (*Call).readMulti)
	m.parts = calls
	return m
}

func (c *Call) readMulti(r *reader) {
	for _, part := range c.parts {
		op := r.int()
		r.bool() // false, but for the end
		r.int()  // the code again
		switch {
		case op == opError:
			if code := Code(r.int()); code != 0 {
				part.Err, part.Code = code, code
				if code != Inconsistent {
					c.Err, c.Code = code, code
				}
			}
		case op == opCreate && part.op == opCreate2: // without a Stat
			part.Path = r.string()
		case op == part.op, op == opCreate2 && part.op == opCreateContainer:
			part.read(part, r)
		default:
			r.bad = true
		}
		if r.bad {
			return
		}
	}
	for _, part := range c.parts {
		if c.Err != nil && part.Err == nil {
			part.Err, part.Code = Inconsistent, Inconsistent // carried out, and undone
		}
		close(part.done)
	}
}

// answer reads a reply behind its header. It reports whether the reply makes sense.
func (c *Call) answer(code Code, r *reader) bool {
	if code != 0 {
		c.Err, c.Code = code, code
	} else {
		c.read(c, r)
	}
	if r.bad {
		return false
	}
	if code != 0 {
		c.failParts()
	}
	close(c.done)
	return true
}

// fail ends a call without an answer.
func (c *Call) fail(err error) {
	c.Err = err
	c.failParts()
	close(c.done)
}

func (c *Call) failParts() {
	for _, part := range c.parts {
		part.Err, part.Code = c.Err, c.Code
		close(part.done)
	}
}
