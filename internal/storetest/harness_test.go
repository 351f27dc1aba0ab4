package storetest_test

import (
	"context"
	"net"
	"testing"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	_ "github.com/interlock-go/interlock/redislock"
)

// front is a server behind a wire.
type front struct {
	*servertest.Server
	w *wire.Wire
}

func (f front) Addr() string { return f.w.Addr() }

// A server that has no time for the first who comes is opened all the same.
func TestDriverIsOpenedWhereTheFirstTryFails(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	f := front{s, wire.New(t, s.Addr())}
	f.w.Refuse()
	l, err := net.Listen("tcp", f.w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = c.Close(), l.Close()
			err = f.w.Accept()
		}
		accepted <- err
	}()
	h := storetest.NewHarness(storetest.Store{Server: f, URL: "redis://" + f.Addr()})
	d := h.Driver(t)
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
