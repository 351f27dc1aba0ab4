package redislock_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redisconn/goredis"
	"github.com/interlock-go/interlock/redislock"
)

// A lock over the rueidis client that the program has already.
func ExampleNew() {
	ctx := context.Background()
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
	quiet := &redislock.Options{Logger: slog.New(slog.DiscardHandler)} // this server writes no log, which would be warned of
	d, err := redislock.New(ctx, redisconn.Rueidis(client), quiet)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := interlock.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Mutex("coupons/42").Do(ctx, func(ctx context.Context) error {
		fmt.Println("held, with a token:", interlock.Fence(ctx, "coupons/42") > 0)
		return nil
	})
	fmt.Println(err)
	// Output:
	// held, with a token: true
	// <nil>
}

// The same over a go-redis client.
func ExampleNew_goRedis() {
	ctx := context.Background()
	server, err := servertest.Start(ctx, servertest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	conn, err := goredis.Conn(client)
	if err != nil {
		log.Fatal(err)
	}
	d, err := redislock.New(ctx, conn, &redislock.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	locks, err := interlock.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.Mutex("coupons/42").TryLock(ctx)
	fmt.Println(lease != nil, err)
	fmt.Println(lease.Release())
	// Output:
	// true <nil>
	// <nil>
}
