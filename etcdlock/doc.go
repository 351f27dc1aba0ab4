// Package etcdlock keeps locks in etcd, in the layout of etcd's own package concurrency.
//
// A client's session is one lease, and a claim is one key of it, NAME/LEASE: whoever has the oldest
// key of a name holds the lock. That is what package concurrency, etcdctl lock and etcd's lock
// service do, so they take the same locks, and wait for each other.
//
//	package main
//
//	import (
//		"context"
//		"log"
//
//		"github.com/interlock-go/interlock"
//		_ "github.com/interlock-go/interlock/etcdlock"
//	)
//
//	func main() {
//		ctx := context.Background()
//		client, err := interlock.Open(ctx, "etcd://localhost:2379", nil)
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
// A program that has a client of etcd's makes the driver of it:
//
//	driver, err := etcdlock.New(ctx, client, nil)
//	locks, err := interlock.New(driver, nil)
//
// # What happens
//
// To take a lock is one transaction, which puts the key and reads the first of the line; to release
// it is one, which deletes the key. Who waits hears of that over one watch for each process and
// name, which shows the line as it is at one revision after the other: to be let in costs no
// request. A token is the revision at which the key was put, times 32, for the 32 turns for which a
// process may pass a lock on.
//
// Readers, writers and permits of semaphores stand in the same line and say in their values what
// they are. Other programs take each of them for a lock that excludes them.
//
// One lease serves any number of locks, and one renewal. That lists the keys of the lease, too: a
// lock whose key was deleted is lost, and a key that was left behind by a request that was given up
// is deleted.
//
// # What it promises
//
// A cluster whose majority keeps what it has committed never has two holders, as long as clocks run
// at the same rate within 1 %, and its tokens grow for ever, but for a restored snapshot that lacks
// the last revisions. See docs/backends/etcd.md for the whole statement.
package etcdlock
