package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

func TestRWMutex_ReadersAndWritersComeInOrder(t *testing.T) {
	for _, processes := range []int{1, 6} {
		bubble(t, func(t *testing.T) {
			store := memlock.New()
			var clients []*interlock.Client
			for range processes {
				clients = append(clients, newClient(t, store.Share(), nil))
			}
			var mu sync.Mutex
			var order []string
			var all sync.WaitGroup
			first := lock(t.Context(), t, newClient(t, store, nil).RWMutex("m"))
			for i, kind := range []string{"reader", "reader", "writer", "reader", "writer", "reader"} {
				m := clients[i%processes].RWMutex("m")
				all.Go(func() {
					take := m.RLock
					if kind == "writer" {
						take = m.Lock
					}
					l, err := take(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					order = append(order, fmt.Sprint(kind, i))
					mu.Unlock()
					if (kind == "writer") != (l.Fence() != 0) {
						t.Errorf("%s %d has the token %d", kind, i, l.Fence())
					}
					time.Sleep(time.Second)
					release(t, l)
				})
				synctest.Wait()
			}
			start := time.Now()
			release(t, first)
			all.Wait()
			slices.Sort(order[:2]) // together
			if got := strings.Join(order, " "); got != "reader0 reader1 writer2 reader3 writer4 reader5" || time.Since(start) != 5*time.Second {
				t.Errorf("%d processes: %s in %v", processes, got, time.Since(start))
			}
		})
	}
}

func TestRWMutex_ConcurrentTriesOfReadersSucceed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		leases := make(chan *interlock.Lease, 200)
		var all sync.WaitGroup
		for range 100 {
			for _, c := range []*interlock.Client{a, b} {
				all.Go(func() {
					l, err := c.RWMutex("m").TryRLock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					leases <- l
				})
			}
		}
		all.Wait()
		close(leases)
		if n := len(claims(t, store, "m")); n != 2 {
			t.Errorf("%d claims of two clients", n)
		}
		_, err := a.RWMutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		for l := range leases {
			release(t, l)
		}
		release(t, must[*interlock.Lease](t)(a.RWMutex("m").TryLock(t.Context())))
	})
}

// Readers of one client join a claim that is there; a writer of another waits for those who joined
// before their tenure was over, and for nobody else.
func TestRWMutex_AWriterIsNotStarvedByReadersThatJoin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const held, tenure = 5 * time.Millisecond, 10 * time.Millisecond
		_, a, b := two(t)
		done := make(chan struct{})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					l, err := a.RWMutex("m").RLock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(held)
					release(t, l)
				}
			})
			time.Sleep(time.Millisecond / 4) // so that there is always one who reads
		}
		time.Sleep(time.Second)
		for range 20 {
			start := time.Now()
			l := lock(t.Context(), t, b.RWMutex("m"))
			if waited := time.Since(start); waited > tenure+2*held {
				t.Errorf("the writer waited %v", waited)
			}
			time.Sleep(held)
			release(t, l)
		}
		close(done)
		all.Wait()
	})
}

func TestRWMutex_AndMutexOfOneNameExcludeEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, a, b := two(t)
		mutex := lock(t.Context(), t, a.Mutex("m"))
		for _, c := range []*interlock.Client{a, b} {
			for what, try := range map[string]func() (*interlock.Lease, error){
				"writer": func() (*interlock.Lease, error) { return c.RWMutex("m").TryLock(t.Context()) },
				"reader": func() (*interlock.Lease, error) { return c.RWMutex("m").TryRLock(t.Context()) },
			} {
				if _, err := try(); !errors.Is(err, interlock.ErrHeld) {
					t.Errorf("%s beside a mutex: %v", what, err)
				}
			}
		}
		release(t, mutex)
		reader := must[*interlock.Lease](t)(b.RWMutex("m").TryRLock(t.Context()))
		_, err := a.Mutex("m").TryLock(t.Context())
		matches(t, err, interlock.ErrHeld)
		release(t, reader)
	})
}

// A reader with another note has a claim of its own, and so has one with a least time, which would
// keep the others'.
func TestRWMutex_ReadersShareOnlyWhatIsAlike(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, c, _ := two(t)
		one := must[*interlock.Lease](t)(c.RWMutex("m").RLock(t.Context()))
		same := must[*interlock.Lease](t)(c.RWMutex("m").RLock(t.Context()))
		noted := must[*interlock.Lease](t)(c.RWMutex("m", interlock.Note("report")).RLock(t.Context()))
		least := must[*interlock.Lease](t)(c.RWMutex("m", interlock.MinHold(time.Second)).RLock(t.Context()))
		line := claims(t, store, "m")
		if len(line) != 3 || line[1].Note != "report" {
			t.Errorf("%+v", line)
		}
		release(t, least, one, same, noted)
		if n := len(claims(t, store, "m")); n != 1 {
			t.Errorf("%d claims, want that of the least time", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}

// A21: the unlock of a reader frees the writer or the other readers; leaving a read lock lets a
// writer in to another.
func TestA21_ReadersAndWritersLeaveForThemselves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, a, b := two(t)
		m := a.RWMutex("m", interlock.Reentrant())
		read := func(ctx context.Context) *interlock.Lease { return must[*interlock.Lease](t)(m.RLock(ctx)) }
		barred := func(when string) {
			t.Helper()
			if l, err := b.RWMutex("m").TryLock(t.Context()); !errors.Is(err, interlock.ErrHeld) {
				t.Errorf("%s, another writer: %v, want ErrHeld", when, err)
				if err == nil {
					release(t, l)
				}
			}
		}
		one, another := read(t.Context()), read(t.Context())
		release(t, one)
		barred("one of two readers left")
		time.Sleep(10 * time.Minute)
		if another.Err() != nil {
			t.Errorf("a reader's lease is not renewed: %v", another.Err())
		}
		barred("a reader stayed for long")
		release(t, another)

		write := lock(t.Context(), t, m)
		inner := read(write.Context())
		release(t, inner)
		barred("a reader inside a writer left")
		inner = read(write.Context())
		release(t, write)
		barred("the writer left, a reader inside it did not")
		release(t, inner)
		if n := len(claims(t, store, "m")); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}
