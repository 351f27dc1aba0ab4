// Package pipetest tries a pipe over the wire of a product: what holds on every server.
package pipetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/connlock"
)

// Share has some goroutines ask over a pipe at once, of which some do not wait for the answer: everybody has his own, once, in the order of
// what was asked, whoever reads and whoever has gone. echo is answered by its argument, so many ms later.
func Share(t *testing.T, p *connlock.Pipe, echo func(text string, ms int) connlock.Query) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			asked, answered := 0, 0
			for round := range 60 {
				want := fmt.Sprint(i, " ", round)
				ctx, cancel := context.WithCancel(t.Context())
				if rand.N(3) == 0 {
					time.AfterFunc(rand.N(6*time.Millisecond), cancel)
				}
				asked++
				all.Add(1)
				err := p.Call(ctx, echo(want, rand.N(4)), func(r connlock.Reply) {
					defer all.Done()
					if answered++; r.Err != nil || r.Field != want || answered != asked {
						t.Errorf("answer %q, %v; want %q", r.Field, r.Err, want)
					}
				})
				cancel()
				if err == nil {
					continue
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("call: %v", err)
				}
				if field, err := p.Fetch(t.Context(), echo("after", 0)); field != "after" || err != nil { // comes behind it
					t.Errorf("after one who went: %q, %v", field, err)
				}
				if answered != asked {
					t.Error("an answer was overtaken")
				}
			}
		})
	}
	all.Wait()
}
