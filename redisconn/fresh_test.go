package redisconn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// The connection has ended, and the server takes a new one and greets nobody. Whoever gives up does
// not wait until that has had its time: the end of a client waited for it two or three times, each
// three seconds.
func TestWhoGivesUpDoesNotWaitForAConnectionThatIsMade(t *testing.T) {
	t.Parallel()
	w := wire.New(t, servertest.Redis(t).Addr())
	conn, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{w.Addr()}, Timeout: 90 * time.Second, KeepAlive: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	ping := []redisconn.Command{{Words: []string{"PING"}, Fresh: true}}
	if reply := conn.DoAll(t.Context(), ping)[0]; reply.Err != nil {
		t.Fatal(reply.Err)
	}
	defer w.Stall(wire.Both)()
	w.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	answered := make(chan error, 1)
	go func() { answered <- conn.DoAll(ctx, ping)[0].Err }()
	waitUntil(t, "a greeting is on its way", func() bool { return w.Count().Requests.Held > 0 })
	cancel()
	select {
	case err := <-answered:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	case <-time.After(30 * time.Second):
		t.Error("whoever gave up waits for a connection that is being made")
	}
}
