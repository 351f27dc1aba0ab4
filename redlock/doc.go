// Package redlock keeps locks on several independent Redis masters: the Redlock algorithm, with
// fencing tokens in the order of leases and a line in place of a race. A majority of the masters is
// enough, so locks go on while any minority is down.
//
// Each master is used on the canonical key, a plain string at exactly the name, so redsync,
// node-redlock, redis-semaphore and other Redlock clients on the same masters exclude us, and we
// them.
//
//	package main
//
//	import (
//		"context"
//		"log"
//
//		"github.com/interlock-go/interlock"
//		_ "github.com/interlock-go/interlock/redlock"
//	)
//
//	func main() {
//		ctx := context.Background()
//		client, err := interlock.Open(ctx, "redlock://10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5", nil)
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
// # What happens
//
// A free name costs one script on every master to take and one to release, all at once: one round
// trip to the second slowest of three, or the third of five. A claim holds when a majority gave
// itself to it, for the TTL less what that took and less 1 % and 2 ms for clocks that run apart.
// What a claim gets without a majority is given back everywhere, and masters that did not answer
// are asked to until they do.
//
// All masters are offered the same counter for a grant, so as a rule they answer the same token.
// Where they do not, the largest is written back until a majority holds it under the claim's own
// ID. Any two majorities share a master, and there the later claim draws its token above: so of two
// leases of a name the later one has the larger token, whatever clocks do.
//
// Who finds a name held stands in a line on every master, in order of a ticket, and is handed each
// master by the claim that leaves. Masters that were reached in different order may go to different
// claims; then each master tells a newer claim that an older one waits behind it, and the newer one
// steps back. Source: M. Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems",
// 1985.
//
// A master that restarts may have forgotten whom it had given itself to. So it has no vote until
// [Options].MaxTTL is over, which every grant checks on the master itself. Who holds a lock takes
// it on such a master again by renewing, so a lease outlives a restart of all masters, one at a
// time, each after the last one has its vote; but none of a majority within MaxTTL, unless these
// write everything down before they answer.
//
// # What it promises
//
// As long as a majority keeps its memory and clocks run at the same rate within 1 %, never two
// hold. A clock that jumps on a majority can let in a second holder; tokens tell which is the later
// one even then. Readers and semaphores are refused with [errors.ErrUnsupported]: two majorities
// share one master only. See docs/backends/redlock.md for the whole statement and docs/models for
// the models of it. Source of the algorithm: "Distributed Locks with Redis", redis.io.
package redlock
