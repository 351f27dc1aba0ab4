package interlockgocron_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/interlock-go/interlock"
	interlockgocron "github.com/interlock-go/interlock/contrib/gocron"
	"github.com/interlock-go/interlock/memlock"
)

func Example() {
	client, err := interlock.New(memlock.New(), nil) // or Open, by the URL of the fleet's store
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	locker := interlockgocron.NewLocker(client, 10*time.Millisecond)
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}

	done := make(chan struct{})
	_, err = scheduler.NewJob(
		gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		locker.Task(func(ctx context.Context) error {
			defer close(done)
			fmt.Println("token of the run:", interlock.Fence(ctx, "report") > 0, ctx.Err())
			return nil
		}),
		gocron.WithName("report"),
	)
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	<-done
	fmt.Println(scheduler.Shutdown())
	// Output:
	// token of the run: true <nil>
	// <nil>
}

func ExampleElector() {
	client, err := interlock.New(memlock.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	elector, err := interlockgocron.NewElector(client, "jobs", interlock.Note("the nightly jobs"))
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	fmt.Println(scheduler.Shutdown(), elector.Close())
	// Output: <nil> <nil>
}
