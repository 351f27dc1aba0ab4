package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/memlock"
)

// open stands for interlock.Open(ctx, "file:/var/lib/shop/locks", nil): each call is another
// machine of the same fleet. Its store is this process.
func open(machine string) *interlock.Client {
	client, err := interlock.New(fleet.Share(), &interlock.Options{Owner: machine})
	if err != nil {
		log.Fatal(err)
	}
	return client
}

var fleet = memlock.New()

// Protect a section.
func ExampleMutex_Do() {
	client := open("web-1")
	defer client.Close()

	left := 10
	err := client.Mutex("coupons/42").Do(context.Background(), func(ctx context.Context) error {
		if err := ctx.Err(); err != nil { // it ends when the lock can no longer be guaranteed
			return err
		}
		left--
		return nil
	})
	fmt.Println(left, err)
	// Output: 9 <nil>
}

// Try once.
func ExampleMutex_TryLock() {
	web1, web2 := open("web-1"), open("web-2")
	defer web1.Close()
	defer web2.Close()
	ctx := context.Background()

	lease, err := web1.Mutex("invoices").TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release()

	_, err = web2.Mutex("invoices").TryLock(ctx)
	var held *interlock.HeldError
	if errors.As(err, &held) && held.Holder != nil {
		fmt.Println("held by", held.Holder.Owner.Name)
	}
	// Output: held by web-1
}

// Wait at most three seconds. A context would bound the waiting as well; Wait leaves the context to
// the work.
func ExampleWait() {
	client, other := open("web-1"), open("web-2")
	defer client.Close()
	defer other.Close()
	ctx := context.Background()

	taken, err := other.Mutex("report").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	go taken.Release()

	err = client.Mutex("report", interlock.Wait(3*time.Second)).Do(ctx, func(context.Context) error {
		fmt.Println("writing the report")
		return nil
	})
	if errors.Is(err, interlock.ErrHeld) {
		fmt.Println("somebody else is at it:", err)
	}
	// Output: writing the report
}

// A job of cron that every machine starts at the same minute, and one runs. MinHold keeps the
// others out even when the job is done before the last machine's clock has struck.
func ExampleMinHold() {
	for _, machine := range []string{"web-1", "web-2", "web-3"} {
		client := open(machine) // Close would wait until the minute is over
		nightly := client.Mutex("nightly", interlock.Wait(0), interlock.MinHold(time.Minute))
		err := nightly.Do(context.Background(), func(context.Context) error {
			fmt.Println("the job runs on", machine)
			return nil
		})
		if err != nil && !errors.Is(err, interlock.ErrHeld) {
			log.Fatal(err)
		}
	}
	// Output: the job runs on web-1
}

// A leader with work. After a loss Lead waits for the function to return, and stands again until
// its context ends.
func ExampleElection_Lead() {
	client := open("web-1")
	defer client.Close()
	ctx, stop := context.WithCancel(context.Background())

	election := client.Election("scheduler", interlock.Note("v1.4"))
	err := election.Lead(ctx, func(ctx context.Context) error {
		leader, err := election.Leader(ctx)
		if err != nil {
			return err
		}
		fmt.Println(leader.Owner.Name, leader.Note, "leads")
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return ctx.Err() // the leadership is over, or the program
			case <-tick.C:
				if n == 3 {
					stop()
				}
			}
		}
	})
	fmt.Println(err)
	// Output:
	// web-1 v1.4 leads
	// context canceled
}

// At most five at once, in the whole fleet.
func ExampleSemaphore_Do() {
	var now, most atomic.Int32
	var all sync.WaitGroup
	for i := range 4 {
		client := open(fmt.Sprint("worker-", i))
		defer client.Close()
		render := client.Semaphore("render", 5)
		for range 10 {
			all.Go(func() {
				err := render.Do(context.Background(), 1, func(context.Context) error {
					for n := now.Add(1); n > most.Load(); {
						most.Store(n)
					}
					now.Add(-1)
					return nil
				})
				if err != nil {
					log.Print(err)
				}
			})
		}
	}
	all.Wait()
	fmt.Println("more than five:", most.Load() > 5)
	// Output: more than five: false
}

// A cache that is mostly read. Who finds it empty looks again with the write lock, because somebody
// may have filled it meanwhile.
func ExampleRWMutex() {
	client := open("web-1")
	defer client.Close()
	prices := client.RWMutex("prices")
	cache, fetched := "", 0

	read := func(ctx context.Context) (price string, err error) {
		err = prices.RDo(ctx, func(context.Context) error { price = cache; return nil })
		if err != nil || price != "" {
			return price, err
		}
		err = prices.Do(ctx, func(context.Context) error {
			if cache == "" {
				fetched++
				cache = "42 €"
			}
			price = cache
			return nil
		})
		return price, err
	}

	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if price, err := read(context.Background()); err != nil || price != "42 €" {
				log.Print(price, err)
			}
		})
	}
	all.Wait()
	fmt.Println("fetched", fetched, "time")
	// Output: fetched 1 time
}

// A transfer between two names. Whoever wants both takes them in the same order, so two transfers
// that cross do not block each other.
func ExampleClient_Multi() {
	client := open("bank-1")
	defer client.Close()
	balance := map[string]int{"ann": 100, "bob": 100}

	transfer := func(from, to string, amount int) error {
		accounts := client.Multi([]string{"account/" + from, "account/" + to})
		return accounts.Do(context.Background(), func(context.Context) error {
			balance[from] -= amount
			balance[to] += amount
			return nil
		})
	}

	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { _ = transfer("ann", "bob", 3) })
		all.Go(func() { _ = transfer("bob", "ann", 1) })
	}
	all.Wait()
	fmt.Println(balance["ann"], balance["bob"])
	// Output: 60 140
}

// The lock's token at a file: who comes late is refused by the resource itself. Package fence does
// it for databases, too.
func ExampleFence() {
	ctx := context.Background()
	client := open("web-1")
	defer client.Close()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	stock := fence.NewFile(filepath.Join(dir, "coupons"), 0o600)

	const name = "coupons/42"
	sell := func(ctx context.Context) error {
		return stock.Update(ctx, interlock.Fence(ctx, name), func(sold []byte) ([]byte, error) {
			return fmt.Append(sold, "sold\n"), nil
		})
	}
	var earlier context.Context
	fmt.Println(client.Mutex(name).Do(ctx, func(ctx context.Context) error { earlier = ctx; return sell(ctx) }))
	fmt.Println(client.Mutex(name).Do(ctx, sell))
	// A holder of before, who was stopped and does not know yet that it is over.
	fmt.Println(errors.Is(sell(context.WithoutCancel(earlier)), fence.ErrStale))
	// Output:
	// <nil>
	// <nil>
	// true
}

// Test your own code: lose the lock under it.
func Example_test() {
	store := memlock.New()
	client, err := interlock.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	sent := 0
	send := func(ctx context.Context) error { // what is to be tested
		return client.Mutex("mail").Do(ctx, func(ctx context.Context) error {
			for range 3 {
				if err := ctx.Err(); err != nil {
					return context.Cause(ctx)
				}
				if sent++; sent == 2 {
					store.Lose("mail") // returns when the lease's context has ended
				}
			}
			return nil
		})
	}
	err = send(context.Background())
	fmt.Println(sent, errors.Is(err, interlock.ErrLost))
	// Output: 2 true
}

// Graceful shutdown, as of an HTTP server: who waits is turned away, who holds may finish.
func ExampleClient_Shutdown() {
	client := open("web-1")
	working, finish := make(chan struct{}), make(chan struct{})
	worked := make(chan error)
	go func() {
		worked <- client.Mutex("orders").Do(context.Background(), func(ctx context.Context) error {
			close(working)
			<-finish
			return ctx.Err()
		})
	}()
	<-working
	waited := make(chan error)
	go func() {
		_, err := client.Mutex("orders").Lock(context.Background())
		waited <- err
	}()

	down := make(chan error)
	go func() { // when the program is told to end
		deadline, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		down <- client.Shutdown(deadline)
	}()
	fmt.Println("turned away:", errors.Is(<-waited, interlock.ErrClosed))
	close(finish)
	fmt.Println("worked:", <-worked)
	fmt.Println("down:", <-down)
	// Output:
	// turned away: true
	// worked: <nil>
	// down: <nil>
}

// Hand a lock to code that takes a sync.Locker. The policy says what becomes of a holder who has
// lost it: here the process ends before another one gets in. To log and go on is a policy, too, for
// who can bear two holders.
func ExampleMutex_Locker() {
	client := open("web-1")
	defer client.Close()

	queue := sync.NewCond(client.Mutex("queue").Locker(func(err error) {
		log.Fatal(err)
	}))
	queue.L.Lock()
	fmt.Println("alone in the fleet")
	queue.L.Unlock()
	// Output: alone in the fleet
}
