// Package interlockclientgo lets the leader election of client-go stand in an election of Interlock, in any store, with tokens,
// and without a Kubernetes. A [Lock] is a resourcelock.Interface:
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"os"
//		"os/signal"
//		"time"
//
//		"k8s.io/client-go/tools/leaderelection"
//
//		"github.com/interlock-go/interlock"
//		interlockclientgo "github.com/interlock-go/interlock/contrib/clientgo"
//		_ "github.com/interlock-go/interlock/etcdlock"
//	)
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		client, err := interlock.Open(ctx, "etcd://localhost:2379", nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//		host, _ := os.Hostname()
//		lock, err := interlockclientgo.New(client, "controller", host)
//		if err != nil {
//			log.Fatal(err)
//		}
//		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
//			Lock:            lock,
//			LeaseDuration:   15 * time.Second,
//			RenewDeadline:   10 * time.Second,
//			RetryPeriod:     2 * time.Second,
//			ReleaseOnCancel: true,
//			Callbacks: leaderelection.LeaderCallbacks{
//				OnStartedLeading: lock.Task(func(ctx context.Context) {
//					reconcile(ctx, interlock.Fence(ctx, "controller"))
//				}),
//				OnStoppedLeading: func() { log.Print("leads no more") },
//			},
//		})
//	}
//
//	func reconcile(ctx context.Context, token uint64) { <-ctx.Done() } // the work
//
// # What is kept, and what is not
//
// The elector of client-go sees that it leads no more when it has failed to renew for RenewDeadline. Others lead by then. So
// the work belongs into [Lock.Task], whose context ends before that, as that of every lease of Interlock does. The elector's
// LeaseDuration bounds nothing here: the client's TTL does, and the lease is renewed without the elector.
//
// The elector asks each RetryPeriod whether it may lead, and stands in no line: who waits by interlock.Election is let in first.
// Its record has no number of transitions that means something, and it is not coordinated (LeaderElectionConfig.Coordinated).
package interlockclientgo
