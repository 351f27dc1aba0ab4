// Package redissonlock keeps locks in Redis in the layout of Redisson, the Redis client for Java,
// so that programs in Go and in Java share a lock: an RLock (also a FencedLock, or a member of a
// MultiLock) with interlock.Mutex, a ReadWriteLock with interlock.RWMutex.
//
//	package main
//
//	import (
//		"context"
//		"log"
//
//		"github.com/interlock-go/interlock"
//		_ "github.com/interlock-go/interlock/redissonlock"
//	)
//
//	func main() {
//		ctx := context.Background()
//		client, err := interlock.Open(ctx, "redisson://localhost:6379", nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//		// The same lock as redisson.getLock("coupons/42") and redisson.getFencedLock("coupons/42") in Java.
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
//	driver, err := redissonlock.New(ctx, redisconn.Rueidis(client), nil)
//	locks, err := interlock.New(driver, nil)
//
// A program that shares its locks with no Java takes package redislock instead: it has an order of
// waiters, direct handoff, semaphores, and tokens that survive the loss of their counter, none of
// which Redisson's layout has a place for.
//
// # What happens
//
// Every claim is one thread of a Redisson client to the others: a field of its own in the hash at
// the name, with a time to live. It is never entered twice there; re-entry is counted in this
// process. A free name costs one script to take and one to release. A claim that finds it held
// subscribes to the name's channel, over one connection for all names of a server, asks again, and
// waits until a message says that the name may be free, or until the hold expires by the answer;
// one request serves all waiters of a process. Which of many processes then comes first is a matter
// of chance.
//
// Everything that is written follows Redisson 3.31 to 4.7: the same keys, values, times to live and
// messages, so either side wakes the other at once. Beside it is a hash of our own in the same
// slot, il:{TAG}:redisson:NAME, that Redisson never reads: it has what people are shown of holders
// and waiters, the mark of an operator's break, and the claims that were released while a request
// for them may still be in flight, so that this request takes nothing when it arrives. A request
// whose connection ends is sent once more on another one: a connection that was closed while idle
// does not show.
//
// # What it promises
//
// One server that keeps its memory, or writes it to disk at once, never has two holders of a name,
// as long as all programs use one kind of lock for it and clocks run at the same rate within 1 %.
// Another kind of lock that stands there is refused and not touched: a read/write lock for a mutex
// and the other way round, a line of fair locks, a canonical lock (a string, as package redislock
// writes it), or data that is no lock.
//
// Tokens are those of a FencedLock: a counter that starts at 1. A grant here draws 32 of them; a
// FencedLock goes on above. A plain RLock draws none. The counter is lost with the server's memory,
// and nothing repairs it: see [Driver.Traits] for what holds on this server. See
// docs/backends/redisson.md for the whole statement, what Redisson's layout cannot do, and the
// traps of mixing its locks.
package redissonlock
