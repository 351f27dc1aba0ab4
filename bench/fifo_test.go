package main

import (
	"testing"
	"testing/synctest"
)

// The floor is a floor only if it keeps the order, which costs.
func TestFIFOKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFIFO()
		unlock, _ := f.lock(t.Context())
		var got []int
		for i := range 10 {
			go func() {
				unlock, _ := f.lock(t.Context())
				got = append(got, i)
				_ = unlock()
			}()
			synctest.Wait()
		}
		_ = unlock()
		synctest.Wait()
		for i, who := range got {
			if i != who {
				t.Fatalf("order %v", got)
			}
		}
		if len(got) != 10 {
			t.Fatalf("only %v came in", got)
		}
	})
}
