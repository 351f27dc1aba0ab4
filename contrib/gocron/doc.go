// Package interlockgocron runs the jobs of gocron on one machine of a fleet. A [Locker] has each run of a job happen once, on
// whichever machine comes first; an [Elector] has all jobs run on one machine, the leader. gocron has no way to tell a job
// that the lock is lost while it runs, so both have a Task, which hands the job a context that ends then and has the token:
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
//		"github.com/go-co-op/gocron/v2"
//
//		"github.com/interlock-go/interlock"
//		interlockgocron "github.com/interlock-go/interlock/contrib/gocron"
//		_ "github.com/interlock-go/interlock/redislock"
//	)
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		client, err := interlock.Open(ctx, "redis://localhost", nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//
//		locker := interlockgocron.NewLocker(client, 10*time.Second) // no machine's clock is further off
//		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer scheduler.Shutdown()
//		_, err = scheduler.NewJob(
//			gocron.CronJob("0 3 * * *", false),
//			locker.Task(func(ctx context.Context) error {
//				return report(ctx, interlock.Fence(ctx, "report")) // the name of the job is the name of the lock
//			}),
//			gocron.WithName("report"),
//		)
//		if err != nil {
//			log.Fatal(err)
//		}
//		scheduler.Start()
//		<-ctx.Done()
//	}
//
//	func report(ctx context.Context, token uint64) error { return ctx.Err() } // the work
//
// # What is kept, and what is not
//
// A job is run by one machine at a time, as far as the store promises that. That a run happens once needs the minimum hold
// of a [Locker] besides: a job that takes a second is over when the machine whose clock is three seconds late comes, and
// finds the lock free. Jobs by interval (gocron.DurationJob) start their intervals when their scheduler does, so they need
// gocron.WithStartAt, or no hold is long enough.
//
// A run that another machine has is skipped; gocron tells that by the listener AfterLockError, with an error that matches
// interlock.ErrHeld. A store that does not answer skips the run likewise, on every machine, with interlock.ErrUnavailable.
package interlockgocron
