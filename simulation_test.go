package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// simulation lets processes take locks of every kind at random while their connections stall, fail
// and come back and leases are taken away, and checks at every grant that those who believe that
// they hold may do so together.
type simulation struct {
	t     *testing.T
	store *memlock.Driver

	mu      sync.Mutex
	rand    *rand.Rand
	holding map[string]map[*interlock.Lease]holding
	tokens  map[string]uint64
	grants  int
}

// holding is what one lease holds of a name: like a claim, under the same rule.
type holding struct{ weight, limit int }

var exclusive, reading = holding{driver.All, driver.All}, holding{1, driver.All}

func (s *simulation) intn(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *simulation) upTo(d time.Duration) time.Duration { return time.Duration(s.intn(int(d))) }

// granted checks a new lease against those that have not ended.
func (s *simulation) granted(l *interlock.Lease, h holding, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants++
	if l.Err() != nil {
		return // taken away in the same moment
	}
	for _, name := range names {
		sum, limit := h.weight, h.limit
		for other, theirs := range s.holding[name] {
			if other.Context().Err() != nil { // what its work goes by; Err would look at the clock, too
				delete(s.holding[name], other)
				continue
			}
			sum, limit = sum+theirs.weight, min(limit, theirs.limit)
		}
		if sum > limit {
			s.t.Errorf("%s: %d is held of %d: %v", name, sum, limit, s.holding[name])
		}
		if s.holding[name] == nil {
			s.holding[name] = map[*interlock.Lease]holding{}
		}
		s.holding[name][l] = h
		if h == exclusive {
			f := l.FenceOf(name)
			if f <= s.tokens[name] && s.tokens[name] != 0 {
				s.t.Errorf("%s: token %d after %d", name, f, s.tokens[name])
			}
			s.tokens[name] = f
		}
	}
}

// left notes that its holder is about to give a lease back.
func (s *simulation) left(l *interlock.Lease, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		delete(s.holding[name], l)
	}
}

// worker takes and gives back a lock, and again.
func (s *simulation) worker(c *interlock.Client, turns int) {
	for range turns {
		options := []interlock.LockOption{}
		for _, o := range []interlock.LockOption{
			interlock.TTL(20 * time.Second), interlock.Grace(100 * time.Millisecond), interlock.Isolated(),
			interlock.Note("a note"), interlock.MaxHold(4 * time.Second), interlock.MinHold(time.Second), interlock.Wait(5 * time.Second),
		} {
			if s.intn(8) == 0 {
				options = append(options, o)
			}
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second+s.upTo(time.Minute))
		name, h := fmt.Sprint("lock ", s.intn(2)), exclusive
		names := []string{name}
		var l *interlock.Lease
		var err error
		switch s.intn(9) {
		case 0:
			l, err = c.Mutex(name, options...).TryLock(ctx)
		case 1, 2, 3:
			l, err = c.Mutex(name, options...).Lock(ctx)
		case 4:
			l, err = c.RWMutex(name, options...).Lock(ctx)
		case 5, 6:
			h = reading
			l, err = c.RWMutex(name, options...).RLock(ctx)
		case 7:
			names, h = []string{"permits"}, holding{1 + s.intn(3), 3}
			l, err = c.Semaphore("permits", 3, options...).Acquire(ctx, h.weight)
		case 8:
			names = []string{"lock 0", "lock 1"}
			l, err = c.Multi(names, options...).Lock(ctx)
		}
		cancel()
		if err != nil {
			allowed := false
			for _, target := range []error{interlock.ErrHeld, interlock.ErrUnavailable, context.DeadlineExceeded, driver.ErrBroken} {
				allowed = allowed || errors.Is(err, target)
			}
			if !allowed {
				s.t.Errorf("%v", err)
			}
			time.Sleep(s.upTo(100 * time.Millisecond))
			continue
		}
		s.granted(l, h, names...)
		if s.intn(3) > 0 {
			work := time.NewTimer(s.upTo([]time.Duration{2 * time.Second, 2 * time.Second, 30 * time.Second}[s.intn(3)]))
			select {
			case <-l.Context().Done():
				time.Sleep(s.upTo(3 * time.Second)) // a sloppy one
			case <-work.C:
			}
			work.Stop()
		}
		s.left(l, names...)
		if err := l.Release(); err != nil && !errors.Is(err, interlock.ErrLost) && !errors.Is(err, interlock.ErrUncertain) {
			s.t.Errorf("release: %v", err)
		}
	}
}

// trouble makes one kind of trouble after the other until ctx ends.
func (s *simulation) trouble(ctx context.Context, d *memlock.Driver) {
	pause := func(d time.Duration) bool {
		t := time.NewTimer(s.upTo(d))
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for pause(20 * time.Second) {
		switch s.intn(5) {
		case 0:
			resume := d.Stall()
			pause(30 * time.Second)
			resume()
		case 1:
			resume := d.StallReplies()
			pause(30 * time.Second)
			resume()
		case 2:
			d.Fail(errors.New("connection reset"))
			pause(5 * time.Second)
			d.Fail(nil)
		case 3:
			s.store.Lose([]string{"lock 0", "lock 1", "permits"}[s.intn(3)])
		case 4:
			name := []string{"lock 0", "lock 1", "permits"}[s.intn(3)]
			if line := claims(s.t, s.store, name); len(line) > 0 {
				c := line[s.intn(len(line))]
				_ = s.store.Break(context.Background(), name, c.PublicID, c.Fence, false)
			}
		}
	}
}

func TestSimulation_NobodyHoldsWithTheWrongCompany(t *testing.T) {
	for _, p := range []memlock.Personality{
		{},
		{Clamp: 7 * time.Second},
		{Round: 4 * time.Second},
		{NoOrder: true},
		{Notices: memlock.Lost},
		{Notices: memlock.Doubled},
		{Notices: memlock.Early},
	} {
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			bubble(t, func(t *testing.T) {
				s := &simulation{
					t: t, store: memlock.NewPersonality(p), rand: rand.New(rand.NewPCG(seed, 0)),
					holding: map[string]map[*interlock.Lease]holding{}, tokens: map[string]uint64{},
				}
				ctx, cancel := context.WithCancel(t.Context())
				var workers, troubles sync.WaitGroup
				var clients []*interlock.Client
				for range 4 {
					d := s.store.Share()
					c := newClient(t, d, nil)
					clients = append(clients, c)
					for range 3 {
						workers.Go(func() { s.worker(c, 40) })
					}
					troubles.Go(func() { s.trouble(ctx, d) })
				}
				workers.Wait()
				cancel()
				troubles.Wait()
				time.Sleep(21 * time.Second) // a TTL
				synctest.Wait()
				for _, name := range []string{"lock 0", "lock 1", "permits"} {
					if line := claims(t, s.store, name); len(line) != 0 {
						t.Errorf("%s: %d claims are left: %+v", name, len(line), line)
					}
				}
				for _, c := range clients {
					if isolated, lines, claims := interlock.Remains(c); isolated+lines+claims != 0 {
						t.Errorf("%d isolated sessions, %d lines and %d claims remain", isolated, lines, claims)
					}
				}
				if s.grants < 100 {
					t.Errorf("%d grants", s.grants)
				}
			})
		})
	}
}
