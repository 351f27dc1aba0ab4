// Package interlock takes distributed locks over the stores a team already runs: mutexes,
// read/write locks, semaphores and elections, with fencing tokens, with leases whose context ends
// before anybody else can get in, and with first-come-first-served waiting by events.
//
// A complete program:
//
//	package main
//
//	import (
//		"context"
//		"log"
//
//		"github.com/interlock-go/interlock"
//		_ "github.com/interlock-go/interlock/filelock"
//	)
//
//	func main() {
//		ctx := context.Background()
//		client, err := interlock.Open(ctx, "file:/var/lib/shop/locks", nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//
//		err = client.Mutex("coupons/42").Do(ctx, func(ctx context.Context) error {
//			return sell(ctx, interlock.Fence(ctx, "coupons/42")) // ctx ends when the lock can no longer be guaranteed
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// # What a holder has
//
// [Mutex.Lock] returns a [Lease], and [Mutex.Do] runs a function with one. A lease is renewed in
// the background and guaranteed until its context ends. There is no callback and no boolean to ask
// before each step: work with the context, and it stops when it must. From that moment at least the
// lease's grace passes until anybody else gets in.
//
// Two contexts have two meanings. The one given to Lock bounds the waiting; the lease's own bounds
// the holding, and has the values of the first but not its cancellation. Do joins both.
//
// # What a lock cannot do
//
// No lock can stop a process that is frozen, and thawed after its lease, from doing what it was
// about to do. For that every exclusive lease has a token, larger than those of all earlier leases
// of the name, and package fence has the half that checks it where the protected thing is written.
//
// # Waiting
//
// For every name a store keeps one line of claims in order of arrival, and one rule: a claim is
// held when its weight and the weights of all claims ahead of it add up to at most its limit.
// Mutex, read/write lock, semaphore and election are that rule with different numbers. The
// goroutines of one client that want a name exclusively share one claim, which a release passes on
// inside the process, without asking the store, up to 31 times and for up to 10 ms; then the client
// stands again at the end of the store's line. So turns alternate between processes, inside a
// process they go by arrival, and short sections run much faster than the store. The readers of one
// client share one claim likewise.
//
// # Time
//
// A lease is trusted until the start of the last request that the store acknowledged, plus what the
// store promised, minus the grace. Leases are renewed about three times in that time, one request
// for all locks of a client with the same TTL. No wall clock decides anything, and time for which
// the machine was suspended counts.
//
// # Stores
//
// A store is chosen by the URL given to [Open], if its package is imported, or by the driver given
// to [New]:
//
//   - filelock for one machine, memlock for tests;
//   - redislock, redlock and redissonlock for one Redis, several, and one that programs in Java lock by Redisson;
//   - pglock, mysqllock and shedlock for databases;
//   - etcdlock, zklock and memcachedlock for the servers of these names.
//
// Package all imports every one. What each promises is in docs/guarantees.md; [Options.Require]
// makes sure of it. Open waits for a store that restarts, fails over or starts later than the
// program; a driver's own constructor does, too.
package interlock
