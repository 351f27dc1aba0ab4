package redlock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/redisstore"
)

// What two claims write of themselves may be the same, who they are is not.
func TestHoldersAreToldApart(t *testing.T) {
	said := &redisstore.Reader{}
	value := func(id string, mark byte, name string) string {
		return fmt.Sprintf("%s%s%c%016d il:push:x {\"o\":{\"name\":%q},\"k\":\"m\"}", layout, strings.Repeat(id, idLen), mark, 1, name)
	}
	a, b := holderOf(value("a", '-', "web"), said), holderOf(value("b", '!', "web"), said)
	if a == b || a.PublicID == b.PublicID || a.Broken || !b.Broken || a.Owner.Name != "web" || b.Owner.Name != "web" {
		t.Errorf("%+v and %+v, want two holders of one owner, the second one broken", a, b)
	}
	for i := range 100 {
		name := fmt.Sprint("worker ", i)
		if h := holderOf(value("c", '+', name), said); h.Owner.Name != name {
			t.Fatalf("%+v, want the owner %q", h, name)
		}
	}
	if h := holderOf("", said); h != nil {
		t.Errorf("%+v holds a free name", h)
	}
	if h := holderOf("theirs", said); !h.Foreign {
		t.Errorf("%+v, want another program", h)
	}
}

// A session remembers what holders wrote, and not for ever.
func TestASessionForgetsWhatItHasRead(t *testing.T) {
	s := &session{}
	first := s.read()
	for i := range readsMax - 1 {
		if s.read() != first {
			t.Fatalf("forgotten after %d holders, want %d", i+1, readsMax)
		}
	}
	if s.read() == first {
		t.Errorf("not forgotten after %d holders", readsMax)
	}
}
