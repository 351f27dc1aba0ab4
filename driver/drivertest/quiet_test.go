package drivertest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// once is a store in memory each driver of which does something once, beside what it is asked for:
// in the middle of a claim, or when one has waited for a while.
type once struct {
	plain
	nth   int64         // Acquire beside which it makes a call; 0 for none
	after time.Duration // of the first claim that waits, it makes two; 0 for never
}

func (o once) Slack() time.Duration { return 0 }
func (o once) Budget() Budget       { return Budget{Acquire: 1, Release: 1, Handoff: 1} }
func (o once) Cannot(string) string { return "only counts are tried here" }

func (o once) Driver(t T) driver.Driver {
	return &onceDriver{Driver: o.plain.Driver(t).(*memlock.Driver), does: o}
}

func (o once) Calls(d driver.Driver) int {
	return d.(*onceDriver).Calls() + int(d.(*onceDriver).more.Load())
}

type onceDriver struct {
	*memlock.Driver
	does once

	acquires, more atomic.Int64
	waits          sync.Once
}

func (d *onceDriver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := d.Driver.Open(ctx, spec)
	return onceSession{s, d}, err
}

type onceSession struct {
	driver.Session
	d *onceDriver
}

func (s onceSession) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if s.d.acquires.Add(1) == s.d.does.nth {
		s.d.more.Add(1)
	}
	g, err := s.Session.Acquire(ctx, c)
	if s.d.does.after > 0 && err == nil && !g.Held {
		s.d.waits.Do(func() { time.AfterFunc(s.d.does.after, func() { s.d.more.Add(2) }) })
	}
	return g, err
}

// What a driver does once is no cost of a claim or of waiting, whenever it falls into what is
// counted.
func TestWhatADriverDoesOnceIsNoCost(t *testing.T) {
	for what, o := range map[string]once{
		"in a claim": {nth: 8}, "while it waits": {after: 450 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o.plain = plain{memlock.New()}
				v := Judge(quietLaw, func(T) Harness { return o })
				if len(v.Faults) > 0 {
					t.Errorf("%s\n%s", v, strings.Join(v.Log, "\n"))
				}
			})
		})
	}
}
