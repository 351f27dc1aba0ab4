//go:build linux || darwin

package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// workerVariable marks a process that is to be a worker: the same binary, executed again. What it is to do comes over
// its standard input, because a store's URL may have a password in it and the environment is inherited.
const workerVariable = "INTERLOCK_TORTURE_WORKER"

// job is what a worker is to do.
type job struct {
	Task   string // storm, contest or transactions
	Store  string
	TTL    time.Duration
	Grace  time.Duration
	Seed   uint64 // of this life
	Slot   int
	Number int
	Diary  string // path
	Board  string // path, of a contest
	Names  []string
	Files  []string // beside each name, the file whose number the lock guards
	Count  int      // goroutines
	First  int      // number of the first, over all processes
	End    instant  // when to stop asking, which the conductor says in the diary
	Guard  guardKind
	Cuts   bool          // the link to the store is cut again and again, by the worker itself
	Wired  bool          // the link is one of the conductor's cables
	Harmed bool          // the store may be out of reach when the worker starts
	Lie    bool          // the store's promise is reported as longer than it is
	Spare  time.Duration // what the store takes off its promise for its own sake, and a lie puts back
	Stalls int           // one in so many holders is cut off and holds on until it is told of its loss; 0 = none
	Alone  bool          // every lease has a session of its own
	Hold   time.Duration // how long a lease is held, at least
	Rest   time.Duration // between leases, at most
	Looks  bool          // whoever got in asks the store since when
	Turns  bool          // tell turns from passes
	Tries  bool          // try again and again, for want of a line
	Tx     string        // the lock is one of a transaction, by what it says

	Permits int // each name is a semaphore of so many, of which a goroutine wants one; 0 = it is a mutex
}

// guardKind is what guards the number in the file.
type guardKind string

const (
	fenced   guardKind = "fenced"   // the lock, and the token at the file
	unfenced guardKind = "unfenced" // the lock alone
	unlocked guardKind = "unlocked" // nothing
	shared   guardKind = "shared"   // there is no number: permits guard none
)

// Main must be the first thing in the main function of every program that calls [Run], and in TestMain of a test that
// does. In a process that Run started as a worker it does the work and never returns; in every other process it
// returns at once.
func Main() {
	if os.Getenv(workerVariable) == "" {
		return
	}
	in := bufio.NewReader(os.Stdin)
	if err := work(in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func work(in *bufio.Reader) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("torture: read the job: %w", err)
	}
	var j job
	if err := json.Unmarshal(line, &j); err != nil {
		return fmt.Errorf("torture: read the job: %w", err)
	}
	// The worker ends with its conductor, however that ends.
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(3)
	}()
	d, err := openDiary(j.Diary)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	for range beats {
		go d.beat(stop)
	}
	switch j.Task {
	case "storm":
		return storm(j, d)
	case "contest":
		if j.Tx != "" && j.Guard != unlocked {
			return transact(j, d, (*actor).enter)
		}
		return contest(j, d)
	case "transactions":
		return transact(j, d, (*actor).add)
	}
	return fmt.Errorf("torture: no task %q", j.Task)
}

// open opens the store of the job, and a client of it, through a link if there is one.
func (j job) open(ctx context.Context, l *link, tracer interlock.Tracer) (*interlock.Client, driver.Driver, func() error, error) {
	open := openStore
	if j.Harmed {
		open = reach
	}
	store, err := open(ctx, j.Store)
	if err != nil {
		return nil, nil, nil, err
	}
	wired := store
	if l != nil {
		l.Driver = store
		wired = l
	}
	client, err := interlock.New(wired, &interlock.Options{
		Owner: j.owner(), TTL: j.TTL, Grace: j.Grace, Tracer: tracer,
		Logger: slog.New(slog.DiscardHandler), // it loses leases all the time
	})
	if err != nil {
		return nil, nil, nil, errors.Join(err, store.Close(ctx))
	}
	closeBoth := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := client.Close()
		if j.Harmed && errors.Is(err, interlock.ErrUncertain) {
			err = nil // of whoever ends while servers are away; that nothing is left is seen afterwards
		}
		return errors.Join(err, store.Close(ctx))
	}
	return client, store, closeBoth, nil
}

// owner is the name of the worker at the store.
func (j job) owner() string { return fmt.Sprintf("torture p%d.%d", j.Slot, j.Number) }
