package zk

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Who sends while another one writes to a server that takes nothing yet does not wait for that, and
// is heard behind it.
func TestWhoWritesHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	const patience = 30 * time.Second
	var all sync.WaitGroup
	ours, theirs := net.Pipe() // a write takes until it is read
	cn := &conn{nc: ours, patience: patience, all: &all}
	done := make(chan bool, 2)
	sends := func(path string) { done <- cn.send([]*Call{Sync(path)}) }
	writes := func() bool {
		cn.mu.Lock()
		defer cn.mu.Unlock()
		return cn.writing
	}
	go sends("/first")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !writes(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("nobody writes")
		}
	}
	go sends("/second")
	if !<-done {
		t.Fatal("the connection is over")
	}
	_ = theirs.SetDeadline(time.Now().Add(patience))
	for _, want := range []string{"/first", "/second"} {
		b, err := readFrame(theirs)
		if err != nil {
			t.Fatalf("%s is not heard: %v", want, err)
		}
		r := &reader{b: b}
		r.int()
		r.int()
		if got := r.string(); got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
	}
	if !<-done {
		t.Error("the connection is over")
	}
	cn.end(net.ErrClosed)
	all.Wait()
}
