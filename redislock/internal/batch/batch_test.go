package batch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// server answers requests, which are numbers, by themselves, each send when it is told to.
type server struct {
	mu    sync.Mutex
	sends []int // how many requests each had
	gate  chan struct{}
}

func (s *server) batcher() *Batcher[int] {
	return &Batcher[int]{
		Alone: func(_ context.Context, ask int) (any, error) {
			s.answer(1)
			return ask, nil
		},
		Together: func(asks []int) []Answer {
			s.answer(len(asks))
			answers := make([]Answer, len(asks))
			for i, ask := range asks {
				answers[i].Value = ask
			}
			return answers
		},
	}
}

func (s *server) answer(requests int) {
	s.mu.Lock()
	s.sends = append(s.sends, requests)
	s.mu.Unlock()
	<-s.gate
}

func (s *server) sent() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.sends...)
}

// What comes while a request is under way goes together when that is answered, or when it fills a
// batch, and each is given the answer to its own request.
func TestRequestsThatComeMeanwhileGoTogether(t *testing.T) {
	for _, c := range []struct {
		requests int
		want     []int // sends under way while nothing is answered
		then     []int // after that
	}{
		{1, []int{1}, nil},
		{3, []int{1}, []int{2}},
		{1 + Full, []int{1, Full}, nil},
		{1 + 2*Full + 50, []int{1, Full, Full}, []int{50}},
		{1 + 3*Full, []int{1, Full, Full}, []int{Full}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{gate: make(chan struct{})}
			b := s.batcher()
			for i := range c.requests {
				go func() {
					if v, err := b.Do(t.Context(), i); v != i || err != nil {
						t.Errorf("the answer to %d is %v, %v", i, v, err)
					}
				}()
				synctest.Wait()
			}
			if got := s.sent(); !equal(got, c.want) {
				t.Errorf("%d requests: sends of %v are under way, want %v", c.requests, got, c.want)
			}
			close(s.gate)
			synctest.Wait()
			if got := s.sent()[len(c.want):]; !equal(got, c.then) {
				t.Errorf("%d requests: then sends of %v, want %v", c.requests, got, c.then)
			}
			time.Sleep(2 * idleTicks * interval) // the watchdog exits
		})
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Who gives up takes a request back that waits; of one that was sent the error says when it is
// over.
func TestWhoGivesUpIsToldWhetherTheRequestWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{gate: make(chan struct{})}
		b := s.batcher()
		errs := make([]error, 4)
		ctx, cancel := context.WithCancel(t.Context())
		start := func(i int, ctx context.Context) {
			go func() { _, errs[i] = b.Do(ctx, i) }()
			synctest.Wait()
		}
		start(0, t.Context())
		start(1, ctx)
		cancel()
		time.Sleep(2 * interval)
		synctest.Wait()
		if !errors.Is(errs[1], driver.ErrNotSent) {
			t.Errorf("given up while it waited: %v, want that it was not sent", errs[1])
		}
		ctx, cancel = context.WithCancel(t.Context())
		start(2, ctx)
		start(3, t.Context())
		s.gate <- struct{}{} // the two are sent together
		synctest.Wait()
		cancel()
		time.Sleep(2 * interval)
		synctest.Wait()
		var under *sessions.Underway
		if !errors.As(errs[2], &under) || errors.Is(errs[2], driver.ErrNotSent) {
			t.Fatalf("given up after it was sent: %v, want that it is under way", errs[2])
		}
		select {
		case <-under.Over:
			t.Error("the request is over before its answer")
		default:
		}
		close(s.gate)
		<-under.Over
		synctest.Wait()
		if got := s.sent(); !equal(got, []int{1, 2}) || errs[3] != nil {
			t.Errorf("sends of %v, and %v for who did not give up; want 1 and 2, and no error", got, errs[3])
		}
		time.Sleep(2 * idleTicks * interval) // the watchdog exits
	})
}
