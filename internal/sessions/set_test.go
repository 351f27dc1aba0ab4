package sessions

import (
	"context"
	"errors"
	"testing"
)

type fakeSession struct {
	all  *Set[*fakeSession]
	late bool // it was asked to close when the driver was closed already
	err  error
}

func (s *fakeSession) Close(context.Context) error {
	s.late = s.all.Closed()
	s.all.Remove(s)
	return s.err
}

// A driver that closes lets its sessions leave first, takes no new one in, and says what went
// wrong.
func TestSessionsCloseWithTheirDriver(t *testing.T) {
	var all Set[*fakeSession]
	cause := errors.New("cut")
	some := []*fakeSession{{all: &all}, {all: &all, err: cause}}
	for _, s := range some {
		if !all.Add(s) {
			t.Fatal("an open driver takes no session in")
		}
	}
	if first, err := all.Close(t.Context()); !first || !errors.Is(err, cause) {
		t.Errorf("closed: first %v, %v; want the first time, and why a session could not", first, err)
	}
	for i, s := range some {
		if s.late {
			t.Errorf("session %d was closed after its driver", i)
		}
	}
	if all.Add(some[0]) || len(all.All()) != 0 || !all.Closed() {
		t.Error("a closed driver takes a session in, or has one left")
	}
	if first, err := all.Close(t.Context()); first || err != nil {
		t.Errorf("closed again: first %v, %v; want nothing", first, err)
	}
}
