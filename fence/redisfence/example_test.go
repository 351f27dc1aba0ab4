package redisfence_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/fence/redisfence"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// A holder that was stopped, and comes back after another has begun, is refused.
func ExampleGuard() {
	ctx := context.Background()
	server, err := servertest.Start(ctx, servertest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	conn, err := redisconn.Open(ctx, redisconn.Config{Addrs: []string{server.Addr()}})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	guard := redisfence.New(conn)
	stopped, next := uint64(33), uint64(65)                   // tokens of two leases of one lock
	fmt.Println(guard.Claim(ctx, "stock/{42}", stopped))      // before the first read
	fmt.Println(guard.Claim(ctx, "stock/{42}", next))         // the next holder begins
	err = guard.Set(ctx, "stock/{42}", stopped, "{42}", "99") // the late write
	fmt.Println(errors.Is(err, fence.ErrStale))
	fmt.Println(guard.Set(ctx, "stock/{42}", next, "{42}", "98"))
	// Output:
	// <nil>
	// <nil>
	// true
	// <nil>
}
