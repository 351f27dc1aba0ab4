package redlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// A call that a majority has answered waits for the last masters half as long as the majority took,
// and 20 ms at most. Who has not answered by then is late, and is not waited for again.
func TestTheLastMastersAreWaitedForAsLongAsTheFirstTook(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		100 * time.Microsecond: 50 * time.Microsecond,
		8 * time.Millisecond:   4 * time.Millisecond,
		time.Second:            20 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &shared{env: &env{}, quorum: 2}
			for i := range 3 {
				d.nodes = append(d.nodes, newNode(d.env, i, nil, &membership.Master{}))
			}
			s := &session{d: d}
			for try, want := range []time.Duration{want, 0} {
				f := newInflight(time.Now())
				for _, n := range d.nodes {
					f.give(n)
				}
				over := make(chan error, 1)
				go func() {
					over <- s.await(t.Context(), f, func() bool { return f.answered() == d.quorum })
				}()
				time.Sleep(took)
				s.mu.Lock()
				for _, n := range d.nodes[:2] {
					f.answer(n, nil)
				}
				f.check()
				s.mu.Unlock()
				if err := <-over; err != nil {
					t.Fatal(err)
				}
				since := time.Now()
				s.linger(context.Background(), f, f.half())
				if waited := time.Since(since); waited != want {
					t.Errorf("try %d: a majority took %v, and the last one is waited for for %v, want %v", try+1, took, waited, want)
				}
			}
			if vain := d.Vain(); vain[0] != 0 || vain[2] != 1 {
				t.Errorf("in vain waited for: %v times, want once for the last one", vain)
			}
		})
	}
}
