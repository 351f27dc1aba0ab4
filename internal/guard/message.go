//go:build linux || darwin

package guard

// op says what a message is.
type op string

const (
	// Down, to the guard.
	opRun      op = "run"
	opDeadline op = "deadline"
	opStop     op = "stop"
	opSignal   op = "signal"
	// Up, to interlock.
	opStarted    op = "started"
	opFailed     op = "failed"
	opLate       op = "late"
	opRemaining  op = "remaining"
	opUnkillable op = "unkillable"
	opOver       op = "over"
)

// message is what goes over the socketpair, in both directions.
type message struct {
	Op op

	// opRun. Bytes, not strings: arguments and environment need not be UTF-8, and JSON would change them.
	Path     []byte   `json:",omitempty"`
	Args     [][]byte `json:",omitempty"`
	Env      [][]byte `json:",omitempty"`
	Dir      []byte   `json:",omitempty"`
	Group    int      `json:",omitempty"` // the process group to put the child into, 0: its own
	Files    int      `json:",omitempty"` // how many descriptors come with this message
	Least    int64    `json:",omitempty"`
	KillRest bool     `json:",omitempty"`

	Deadline Deadline // opRun, opDeadline, opStop
	Signal   int      `json:",omitempty"` // opSignal
	Errno    int      `json:",omitempty"` // opFailed
	Pids     []int    `json:",omitempty"` // opStarted, opRemaining, opUnkillable
	State    State    // opOver
}

func toBytes(ss []string) [][]byte {
	bs := make([][]byte, len(ss))
	for i, s := range ss {
		bs[i] = []byte(s)
	}
	return bs
}

func toStrings(bs [][]byte) []string {
	ss := make([]string, len(bs))
	for i, b := range bs {
		ss[i] = string(b)
	}
	return ss
}
