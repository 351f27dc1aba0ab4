package zk

import (
	"io"
	"net"
	"testing"
	"time"
)

// Whatever a server sends, it is an answer, or it ends the connection, and no call waits for ever.
func FuzzAnswers(f *testing.F) {
	calls := func() []*Call {
		return []*Call{
			Create("/", nil, Ephemeral, Anyone), Get("/", true), Children("/", true), Sync("/"), Set("/", nil, 0), Delete("/", 0),
			Multi(Delete("/", 0), Create("/", nil, Ephemeral, Anyone)), closeSession(),
		}
	}
	frame := func(r record) []byte { return []byte(append(record{}.int(int32(len(r))), r...)) }
	stat := make(record, 68)
	f.Add(byte(0), frame(append(record{}.int(1).long(5).int(0).string("/a"), stat...)))
	f.Add(byte(1), frame(append(record{}.int(1).long(5).int(0).bytes([]byte("data")), stat...)))
	f.Add(byte(2), frame(append(record{}.int(1).long(5).int(0).int(2).string("a").string("b"), stat...)))
	f.Add(byte(2), frame(record{}.int(1).long(5).int(0).int(1<<30)))
	f.Add(byte(3), frame(record{}.int(1).long(5).int(int32(NoNode))))
	f.Add(byte(4), frame(record{}.int(-1).long(-1).int(0).int(Deleted).int(3).string("/a")))
	f.Add(byte(5), frame(record{}.int(2).long(5).int(0)))
	f.Add(byte(6), frame(append(record{}.int(1).long(5).int(0).int(opDelete).bool(false).int(0).int(opCreate2).bool(false).int(0).string("/a"), stat...)))
	f.Add(byte(6), frame(record{}.int(1).long(5).int(0).int(opError).bool(false).int(0).int(int32(NoNode)).int(opError).bool(false).int(0).int(int32(Inconsistent))))
	f.Add(byte(7), []byte(record{}.int(-1)))
	f.Fuzz(func(t *testing.T, which byte, answer []byte) {
		here, there := net.Pipe()
		cn := &conn{nc: here, patience: time.Minute}
		go func() { _, _ = io.Copy(io.Discard, there) }()
		go func() {
			_, _ = there.Write(answer)
			_ = there.Close()
		}()
		c := calls()[int(which)%len(calls())]
		if !cn.send([]*Call{c}) {
			t.Fatal("it is over")
		}
		cn.end(cn.read(func(int64) {}, func(Event) {}))
		for _, call := range append(c.parts, c) {
			select {
			case <-call.Done():
			default:
				t.Fatalf("request %d is not done", call.op)
			}
		}
	})
}

func TestRecordsAreReadAsTheyAreWritten(t *testing.T) {
	r := &reader{b: record{}.int(-5).long(-1 << 40).bool(true).bytes(nil).string("é").int(2).string("a").string("").int(-1).int(0)}
	if a, b, c, d, e := r.int(), r.long(), r.bool(), r.bytes(), r.string(); a != -5 || b != -1<<40 || !c || len(d) != 0 || e != "é" {
		t.Error(a, b, c, d, e)
	}
	if f, g, h := r.strings(), r.bytes(), r.strings(); len(f) != 2 || f[0] != "a" || f[1] != "" || g != nil || h != nil || r.bad || len(r.b) != 0 {
		t.Error(f, g, h, r.bad, r.b)
	}
	if r.long() != 0 || !r.bad {
		t.Error("it reads beyond the end")
	}
}
