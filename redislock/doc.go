// Package redislock keeps locks in Redis: one server, a master behind Sentinels, or a Cluster;
// Valkey and other compatible servers too.
//
// The lock is the canonical one: a plain string at exactly the name, set only if absent and with a
// time to live, deleted only by the client that wrote its value. So redsync, bsm/redislock,
// redis-py, node-redlock, redis-semaphore or a SET NX PX by hand exclude us, and we them. What
// those do not have stands beside it, in keys of the same slot: a counter of fencing tokens, a line
// of waiters that are woken by messages and handed the lock directly, readers and permits.
//
//	package main
//
//	import (
//		"context"
//		"log"
//
//		"github.com/interlock-go/interlock"
//		_ "github.com/interlock-go/interlock/redislock"
//	)
//
//	func main() {
//		ctx := context.Background()
//		client, err := interlock.Open(ctx, "redis://localhost:6379", nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//		err = client.Mutex("coupons/42").Do(ctx, func(ctx context.Context) error {
//			log.Print("nobody else does this now; token ", interlock.Fence(ctx, "coupons/42"))
//			return nil
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// A program that has a client already makes the driver of it:
//
//	driver, err := redislock.New(ctx, redisconn.Rueidis(client), nil)
//	locks, err := interlock.New(driver, nil)
//
// # What happens
//
// A free name costs one short script to take and one to release, a round trip each. A claim that
// finds it held subscribes to a channel of its process, puts its ID in line and waits. A release
// takes the first of the line, draws its token, publishes to its process and makes it the holder,
// all in one script, so a name is never free while a claim waits. A process without a subscription
// is dead or will ask again, and is left out there and then. Only the first of a line watches the
// clock for a holder that has died.
//
// State, not messages: a claim is waiting, held or gone, and messages, answers and renewals only
// move it forward. One that is lost, doubled, late or early does no harm; the next renewal finds
// what was missed.
//
// A request whose connection ends is sent once more on another one: a connection that was closed
// while idle does not show. One without an answer all the same leaves its outcome open. Its claim
// is released, after it on the same connection where there is one and for a while again, since a
// request that a network held back may arrive after its own release.
//
// # What it promises
//
// One server that keeps its memory, or writes it to disk at once, never has two holders, as long as
// clocks run at the same rate within 1 %. A failover may lose a lock that was just taken, because
// replicas acknowledge late, and so may a restart without its log: then two can hold, and only the
// tokens keep them apart, which go on growing as long as the server's clock is not set back behind
// them. See docs/backends/redis.md for the whole statement, the rights that a user of locks needs,
// and the layout.
package redislock
