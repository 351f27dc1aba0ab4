package redlock_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock"
)

// A lock over three masters, by clients that the program has already; one master goes down, and the
// lock goes on.
func ExampleNew() {
	ctx := context.Background()
	var conns []redisconn.Conn
	var servers []*servertest.Server
	for range 3 {
		server, err := servertest.Start(ctx, servertest.Options{})
		if err != nil {
			log.Fatal(err)
		}
		defer server.Close()
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}})
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close()
		servers, conns = append(servers, server), append(conns, redisconn.Rueidis(client))
	}

	d, err := redlock.New(ctx, conns, &redlock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := interlock.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	first, err := locks.Mutex("coupons/42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := servers[0].Kill(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("released:", first.Release())
	second, err := locks.Mutex("coupons/42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the later lease has the larger token:", second.Fence() > first.Fence())
	fmt.Println("released:", second.Release())
	// Output:
	// released: <nil>
	// the later lease has the larger token: true
	// released: <nil>
}
