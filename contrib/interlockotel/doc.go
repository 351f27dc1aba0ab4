// Package interlockotel tells OpenTelemetry of locks, by metrics and by spans. It needs the API only; what becomes of it is for the SDK
// of the program to say:
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"os"
//
//		"github.com/interlock-go/interlock"
//		"github.com/interlock-go/interlock/contrib/interlockotel"
//		_ "github.com/interlock-go/interlock/redislock"
//	)
//
//	func main() {
//		// Here the program sets its global providers of meters and tracers, as ever.
//		tracer, err := interlockotel.New(&interlockotel.Options{Store: "main"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		client, err := interlock.Open(context.Background(), "redis://localhost", &interlock.Options{Tracer: tracer})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//		err = client.Mutex("nightly").Do(context.Background(), func(ctx context.Context) error {
//			return os.Rename("report.new", "report") // spans of ctx are children of that of the hold
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// # Spans
//
// A wait is a span "interlock.wait", from the call to the grant or its failure, and so a parent of what the store's client does meanwhile. A
// lease is a span "interlock.hold", from the grant to the release or loss, with a link to its wait. Both are children of the caller's
// span; what is done with the lease's context is a child of the hold. Only what is a fault has the status error: a wait that found the store
// unavailable, or was refused; a lease that was lost, or whose release is not confirmed. That somebody else has the lock is none.
//
// A wait for a mutex, or for a lock for writing, that this process holds has a link to that hold. Beyond the process no such link can be
// drawn, because stores keep no context of a trace, and a note with one would keep leases from being passed on. Whom a wait has failed for is
// in the attribute interlock.owner, where the store could say. Readers and permits are not linked to, since nobody waits for one of
// them alone, nor is any but the first of several names.
//
//	interlock.name, interlock.kind, interlock.store    of both
//	interlock.result                                   of a wait, as in the metrics
//	interlock.owner                                    of a wait that has failed: who has the lock
//	interlock.fence                                    the token, of a hold that has one
//	interlock.reason                                   of a hold that was lost, as in the metrics
//	error.type                                         of what has failed: result, reason, or uncertain
//
// # Metrics
//
// They have the names that Prometheus gives to those of interlockprom, when they are translated as usual, and the same attributes: one
// dashboard shows both. All have the attribute store.
//
//	interlock.wait {kind, result}    s          granted, passed, held, timeout, cancelled, unavailable, error
//	interlock.hold {kind}            s
//	interlock.renew.slack            s          trust that leases had left when a renewal was answered or had failed; 0 is a loss
//	interlock.renewals {result}      {renewal}  ok, late (more than half of a lease's trust was over), error
//	interlock.lost {reason}          {lease}    expired, stalled, session, gone, broken, max_hold, shutdown
//	interlock.uncertain              {release}  that the store has not confirmed in time
//	interlock.passes                 {lease}    passed on inside this process, without asking the store
//	interlock.waiters                {call}     now, in this process
//	interlock.holders                {lease}    now, in this process
//
// A lock's name is no attribute of a metric unless [Options.Name] maps names to a few values.
package interlockotel
