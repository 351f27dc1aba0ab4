package interlockclientgo_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/interlock-go/interlock"
	interlockclientgo "github.com/interlock-go/interlock/contrib/clientgo"
	"github.com/interlock-go/interlock/memlock"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // an elector says much
	os.Exit(m.Run())
}

const (
	leaseDuration = 15 * time.Second // client-go's defaults
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// candidate is one process of the fleet, with an elector of client-go.
type candidate struct {
	t       *testing.T
	lock    *interlockclientgo.Lock
	work    func(context.Context) // while it leads
	plain   bool                  // the work is no Task
	release bool
	mu      sync.Mutex
	leaders []string // that it was told of
}

func newCandidate(t *testing.T, store *memlock.Driver, identity string, work func(context.Context)) *candidate {
	t.Helper()
	client, err := interlock.New(store, &interlock.Options{Owner: "host of " + identity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	lock, err := interlockclientgo.New(client, "controller", identity)
	if err != nil {
		t.Fatal(err)
	}
	return &candidate{t: t, lock: lock, work: work, release: true}
}

// run is a run of its elector, which returns when ctx has ended or the leadership is lost.
func (c *candidate) run(ctx context.Context) {
	work := c.work
	if !c.plain {
		work = c.lock.Task(work)
	}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: c.release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: work,
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.leaders = append(c.leaders, identity)
			},
		},
	})
	if err != nil {
		c.t.Error(err)
		return
	}
	e.Run(ctx)
}

// told returns the last leader that it was told of.
func (c *candidate) told() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.leaders) == 0 {
		return ""
	}
	return c.leaders[len(c.leaders)-1]
}

// standing returns how many claims stand in the store's line.
func standing(t *testing.T, store *memlock.Driver) int {
	t.Helper()
	l, err := store.Line(t.Context(), "controller")
	if err != nil {
		t.Fatal(err)
	}
	return len(l.Claims)
}

// Three electors, of which one leads at a time; the leader is ended, loses its lease or its store, again and again.
func TestElector_OneLeadsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		var mu sync.Mutex
		leading, terms, last := 0, 0, uint64(0)
		work := func(ctx context.Context) {
			mu.Lock()
			leading++
			terms++
			token := interlock.Fence(ctx, "controller")
			if leading != 1 || token <= last {
				t.Errorf("%d lead, with the token %d after %d", leading, token, last)
			}
			last = token
			mu.Unlock()
			<-ctx.Done()
			time.Sleep(time.Second) // it takes that long to stop, less than the grace
			mu.Lock()
			leading--
			mu.Unlock()
		}
		now := func() (leads, soFar int) {
			mu.Lock()
			defer mu.Unlock()
			return leading, terms
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		ends := make(chan context.CancelFunc, 1) // has what ends the elector of who leads
		wires := make([]*memlock.Driver, 3)
		for i := range wires {
			wires[i] = store.Share()
			c := newCandidate(t, wires[i], string(rune('a'+i)), nil)
			all.Go(func() {
				for ctx.Err() == nil {
					one, end := context.WithCancel(ctx)
					c.work = func(ctx context.Context) {
						select { // that of who led before
						case <-ends:
						default:
						}
						ends <- end
						work(ctx)
					}
					c.run(one)
					end()
				}
			})
		}
		time.Sleep(time.Minute)
		for i := range 12 {
			switch i % 3 {
			case 0:
				(<-ends)()
			case 1:
				store.Lose("controller")
			case 2:
				for _, w := range wires {
					resume := w.Stall()
					time.AfterFunc(time.Minute, resume)
				}
				time.Sleep(time.Minute)
			}
			time.Sleep(time.Minute)
			if n, _ := now(); n != 1 || standing(t, store) != 1 {
				t.Errorf("round %d: a minute later %d lead, with %d claims", i, n, standing(t, store))
			}
		}
		stop()
		all.Wait()
		synctest.Wait()
		time.Sleep(time.Minute)
		if _, n := now(); n != 13 || standing(t, store) != 0 {
			t.Errorf("%d terms, want 13, and %d claims at the end", n, standing(t, store))
		}
	})
}

// The work hears of the loss at once; the elector finds out within RenewDeadline, and gets no other lease meanwhile. Then it may
// lead again.
func TestTask_HearsOfTheLossAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		ended := make(chan error, 1)
		c := newCandidate(t, store, "a", func(ctx context.Context) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
		})
		over := make(chan struct{})
		go func() {
			defer close(over)
			c.run(t.Context())
		}()
		time.Sleep(time.Second)
		first := c.lock.Fence()
		if first == 0 || c.told() != "a" {
			t.Fatalf("token %d, told that %q leads", first, c.told())
		}
		start := time.Now()
		store.Lose("controller")
		if err := <-ended; !errors.Is(err, interlock.ErrLost) || time.Since(start) != 0 {
			t.Errorf("the work ended after %v with %v, want the loss at once", time.Since(start), err)
		}
		time.Sleep(renewDeadline - time.Second)
		if n := standing(t, store); n != 0 || c.lock.Fence() != 0 {
			t.Fatalf("the elector has another lease for the leadership that was lost: %d claims, token %d", n, c.lock.Fence())
		}
		<-over
		if d := time.Since(start); d > renewDeadline+retryPeriod {
			t.Errorf("the elector went on for %v", d)
		}
		ctx, stop := context.WithCancel(t.Context())
		go c.run(ctx)
		time.Sleep(time.Second)
		if again := c.lock.Fence(); again <= first {
			t.Errorf("the token of the second leadership is %d, that of the first was %d", again, first)
		}
		stop()
		if err := <-ended; errors.Is(err, interlock.ErrLost) {
			t.Errorf("the second work ended with %v, want the end of its elector", err)
		}
	})
}

// A leadership ends when its work does, and where the lock does not know that, when client-go's own would.
func TestElector_ReleasesBehindTheWork(t *testing.T) {
	for name, c := range map[string]struct {
		plain, release bool
		want           time.Duration // from the end of the elector
	}{
		"a task":                         {false, false, 5 * time.Second},
		"a task, release on cancel":      {false, true, 5 * time.Second},
		"no task":                        {true, false, leaseDuration},
		"no task, but release on cancel": {true, true, 0}, // as client-go's documentation warns of
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			a := newCandidate(t, store.Share(), "a", func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(5 * time.Second)
			})
			a.plain, a.release = c.plain, c.release
			ctx, stop := context.WithCancel(t.Context())
			go a.run(ctx)
			time.Sleep(time.Minute)
			stop()
			start := time.Now()
			for l, err := range store.Watch(t.Context(), "controller") {
				if err != nil {
					t.Fatal(err)
				}
				if len(l.Claims) == 0 {
					break
				}
			}
			if d := time.Since(start); d != c.want {
				t.Errorf("%s: released after %v, want %v", name, d, c.want)
			}
			time.Sleep(time.Minute)
		})
	}
}

// What others are told: who leads, also where that is another program, or another process of the same identity.
func TestLock_Answers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		wire := store.Share()
		a := newCandidate(t, store.Share(), "a", nil).lock
		b := newCandidate(t, wire, "b", nil).lock
		twin := newCandidate(t, store.Share(), "a", nil).lock
		ctx := t.Context()

		if _, _, err := b.Get(ctx); !apierrors.IsNotFound(err) {
			t.Errorf("nobody leads: %v, want NotFound", err)
		}
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15, LeaderTransitions: 3}
		if err := a.Create(ctx, record); err != nil {
			t.Fatal(err)
		}
		for who, l := range map[string]*interlockclientgo.Lock{"a": a, "b": b, "another process of a": twin} {
			got, raw, err := l.Get(ctx)
			want := map[string]string{"another process of a": "a (another process)"}[who]
			if want == "" {
				want = "a"
			}
			if err != nil || got.HolderIdentity != want || len(raw) == 0 {
				t.Errorf("%s is told %+v, %v: want that %s leads", who, got, err, want)
			}
		}
		for who, l := range map[string]*interlockclientgo.Lock{"b": b, "a": twin} {
			record.HolderIdentity = who
			if err := l.Update(ctx, record); !apierrors.IsConflict(err) {
				t.Errorf("%s takes what a has: %v, want Conflict", who, err)
			}
		}
		record.HolderIdentity = "b"
		if err := a.Update(ctx, record); !apierrors.IsConflict(err) {
			t.Errorf("a is to write for b: %v, want Conflict", err)
		}
		record.HolderIdentity = ""
		if err := b.Update(ctx, record); err != nil || a.Fence() == 0 {
			t.Errorf("b releases what it has not: %v, token of a: %d", err, a.Fence())
		}
		if err := a.Update(ctx, record); err != nil || a.Fence() != 0 || standing(t, store) != 0 {
			t.Errorf("a releases: %v, token %d, %d claims", err, a.Fence(), standing(t, store))
		}

		// A program that stands by interlock.Election leads.
		client, err := interlock.New(store.Share(), &interlock.Options{Owner: "the other"})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		err = client.Election("controller").Lead(ctx, func(context.Context) error {
			got, _, err := b.Get(ctx)
			if err != nil || got.HolderIdentity != "the other" {
				t.Errorf("b is told %+v, %v", got, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}

		// A store that does not answer is no election without a leader.
		wire.Fail(errors.New("connection reset"))
		if _, _, err := b.Get(ctx); !errors.Is(err, interlock.ErrUnavailable) || apierrors.IsNotFound(err) {
			t.Errorf("the store fails: %v, want ErrUnavailable", err)
		}
		record.HolderIdentity = "b"
		if err := b.Create(ctx, record); !errors.Is(err, interlock.ErrUnavailable) || apierrors.IsConflict(err) {
			t.Errorf("the store fails: %v, want ErrUnavailable", err)
		}
		wire.Fail(nil)

		for what, f := range map[string]func() (*interlockclientgo.Lock, error){
			"no identity": func() (*interlockclientgo.Lock, error) { return interlockclientgo.New(client, "controller", "") },
			"no name":     func() (*interlockclientgo.Lock, error) { return interlockclientgo.New(client, "", "a") },
			"a long identity": func() (*interlockclientgo.Lock, error) {
				return interlockclientgo.New(client, "m", string(make([]byte, 300)))
			},
		} {
			if l, err := f(); err == nil || l != nil {
				t.Errorf("%s: %v, %v", what, l, err)
			}
		}
	})
}
