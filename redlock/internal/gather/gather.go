// Package gather asks all masters at once and waits for as many answers as matter, or for a while.
package gather

import (
	"context"
	"time"
)

// Answers calls ask for each of n masters, in goroutines of their own, and hands each answer to
// take, one after the other in the caller's goroutine. It returns true when all have answered. It
// returns false when ctx has ended, or when patience is over since take first returned true, which
// says that there are enough answers. What comes after that is dropped.
func Answers[T any](ctx context.Context, n int, patience time.Duration, ask func(i int) T, take func(i int, answer T) (enough bool)) bool {
	type numbered struct {
		i      int
		answer T
	}
	answers := make(chan numbered, n)
	for i := range n {
		go func() { answers <- numbered{i, ask(i)} }()
	}
	var late <-chan time.Time
	for range n {
		select {
		case a := <-answers:
			if take(a.i, a.answer) && late == nil {
				timer := time.NewTimer(patience)
				defer timer.Stop()
				late = timer.C
			}
		case <-late:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Sleep returns true after a while, or false at once when ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
