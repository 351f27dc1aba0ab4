package redisstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// PerScript is how many names one script is run for, as a rule: it then takes the server less than
// a millisecond.
const PerScript = 100

// Groups divides things by the slot of their keys, if there are several masters, and then into
// groups of at most size, for one script each.
func Groups[T any](s *Store, things []T, size int, key func(T) string) (groups [][]T) {
	if !s.Cluster {
		return slices.Collect(slices.Chunk(things, size))
	}
	bySlot := map[int][]T{}
	for _, t := range things {
		slot := redisconn.Slot(key(t))
		bySlot[slot] = append(bySlot[slot], t)
	}
	for _, some := range bySlot {
		groups = slices.AppendSeq(groups, slices.Chunk(some, size))
	}
	return groups
}

// RenewTimeout is how long the requests of one renewal may take: at most half of what is left of
// ctx, so that a connection that has died unnoticed does not use up the only try.
func (s *Session[C]) RenewTimeout(ctx context.Context) time.Duration {
	end, ends := ctx.Deadline()
	if !ends {
		return s.Timeout
	}
	return max(min(s.Timeout, time.Until(end)/2), time.Millisecond)
}

// Renewed returns the answer of a renewal. If calls is 0 nothing was sent yet, and it sends a PING:
// a renewal is an answer of the server.
func (s *Session[C]) Renewed(ctx context.Context, calls int, lost []driver.Loss, err error) (driver.Renewal, error) {
	if calls == 0 && err == nil {
		err = Ping(sessions.Within(ctx, s.RenewTimeout(ctx)), s.store.Conn)
	}
	if err != nil {
		return driver.Renewal{}, fmt.Errorf("%s: renew: %w", s.store.Name, err)
	}
	return driver.Renewal{Valid: s.Valid(), Lost: lost}, nil
}

// Missing handles the answer of a script that renews claims: a number for each claim that was not
// renewed, which is its place among them, counted from 1, times 2, plus 1 if it was broken. Missing
// returns the claims that were held and are lost.
func (s *Session[C]) Missing(claims []C, answer any) (lost []driver.Loss) {
	numbers, _ := answer.([]any)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, n := range numbers {
		n, _ := n.(int64)
		i := n/2 - 1
		if i < 0 || i >= int64(len(claims)) {
			continue
		}
		c := claims[i].Common()
		if c.Leaving || c.State != Held {
			continue
		}
		if n%2 == 1 {
			c.End(Broken)
		} else {
			c.End(Gone)
		}
		lost = append(lost, c.Loss())
	}
	return lost
}
