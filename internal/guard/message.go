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
	opHalted     op = "halted"
	opRemaining  op = "remaining"
	opUnkillable op = "unkillable"
	opOver       op = "over"
)

// message is what goes over the socketpair, in both directions.
type message struct {
	Op op

	// opRun. Arguments and environment need not be UTF-8.
	Path     []byte
	Args     [][]byte
	Env      [][]byte
	Dir      []byte
	Group    int // the process group to put the child into, 0: its own
	Files    int // how many descriptors come with this message
	Least    int64
	KillRest bool

	Deadline Deadline // opRun, opDeadline, opStop
	Signal   int      // opSignal
	Errno    int      // opFailed
	Pids     []int    // opStarted, opRemaining, opUnkillable
	State    State    // opOver
}

// fields goes through all of m in the order in which it is sent.
func (m *message) fields(w *wire) {
	text(w, &m.Op)
	text(w, &m.Path)
	list(w, &m.Args, text)
	list(w, &m.Env, text)
	text(w, &m.Dir)
	number(w, &m.Group)
	number(w, &m.Files)
	number(w, &m.Least)
	flag(w, &m.KillRest)
	number(w, &m.Deadline.Term)
	number(w, &m.Deadline.Kill)
	number(w, &m.Deadline.End)
	number(w, &m.Signal)
	number(w, &m.Errno)
	list(w, &m.Pids, number)
	number(w, &m.State.Code)
	number(w, &m.State.Signal)
	flag(w, &m.State.Stopped)
	flag(w, &m.State.GuardDied)
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
