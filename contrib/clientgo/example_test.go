package interlockclientgo_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/interlock-go/interlock"
	interlockclientgo "github.com/interlock-go/interlock/contrib/clientgo"
	"github.com/interlock-go/interlock/memlock"
)

func Example() {
	client, err := interlock.New(memlock.New(), nil) // or Open, by the URL of a store
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := interlockclientgo.New(client, "controller", "pod-1")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lock.Task(func(ctx context.Context) {
				fmt.Println("leads with a token:", interlock.Fence(ctx, "controller") > 0)
				stop()
			}),
			OnStoppedLeading: func() { fmt.Println("leads no more") },
		},
	})
	// Output:
	// leads with a token: true
	// leads no more
}
