//go:build linux || darwin

package guard

import (
	"reflect"
	"syscall"
	"testing"
)

// full has something in each field: the zero value of one that is not sent would not be noticed.
var full = message{
	Op: opRun, Path: []byte("/bin/\xff"), Args: [][]byte{[]byte("a"), {}, []byte("\x00\xff")}, Env: [][]byte{[]byte("A=b")}, Dir: []byte("d"),
	Group: 1 << 30, Files: 2, Least: -1, KillRest: true, Deadline: Deadline{Term: 1 << 62, Kill: -1 << 63, End: 1<<63 - 1},
	Signal: 3, Errno: 4, Pids: []int{5, 1 << 22}, State: State{Code: 6, Signal: syscall.SIGKILL, Stopped: true, GuardDied: true},
}

func TestMessageArrivesAsItWasSent(t *testing.T) {
	all := reflect.ValueOf(full)
	for i := range all.NumField() {
		if all.Field(i).IsZero() {
			t.Errorf("the message of this test has nothing in %s", all.Type().Field(i).Name)
		}
	}
	var got message
	if err := got.decode(full.encode(nil)); err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("read %+v, %v\nsent %+v", got, err, full)
	}
}

// What was cut short, or has more behind it, is no message, and neither is one whose counts are not
// true.
func TestMessageThatIsNone(t *testing.T) {
	sent := full.encode(nil)
	var m message
	for n := range sent {
		if m.decode(sent[:n]) == nil {
			t.Errorf("the first %d bytes of %d were taken for all", n, len(sent))
		}
	}
	if m.decode(append(sent, 0)) == nil {
		t.Error("what has a byte behind it was taken for a message")
	}
	for i := range sent {
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			changed := append([]byte(nil), sent...)
			changed[i] = b
			_ = m.decode(changed) // must not panic, nor make what it does not have
		}
	}
}
