package drivertest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// polling is a store in memory that tells nobody anything.
type polling struct{ plain }

func (p polling) Driver(t T) driver.Driver  { return pollingDriver{p.plain.Driver(t).(*memlock.Driver)} }
func (p polling) Slack() time.Duration      { return 0 }
func (p polling) Calls(d driver.Driver) int { return d.(pollingDriver).Calls() }
func (p polling) Budget() Budget            { return Budget{Acquire: 1, Release: 1, Handoff: 3} }
func (p polling) Cannot(string) string      { return "only counts are tried here" }

type pollingDriver struct{ *memlock.Driver }

func (d pollingDriver) Traits() driver.Traits {
	t := d.Driver.Traits()
	t.Events = 0
	return t
}

func (d pollingDriver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := d.Driver.Open(ctx, spec)
	return pollingSession{s, d}, err
}

type pollingSession struct {
	driver.Session
	d pollingDriver
}

// Wait looks into the line, which renews nothing.
func (s pollingSession) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, 5*time.Millisecond, 250*time.Millisecond, func(ctx context.Context) (driver.Grant, error) {
		l, err := s.d.Line(ctx, c.Name)
		if err != nil || !slices.ContainsFunc(l.Claims, func(h driver.Holder) bool { return h.Held && h.PublicID == driver.PublicID(c.ID) }) {
			return driver.Grant{}, err
		}
		return s.Acquire(ctx, c)
	})
}

// Where the machine is late, a driver that polls is never seen to be quiet, and it is judged all
// the same, in the first trial.
func TestAPollingDriverIsJudgedOnALateMachine(t *testing.T) {
	for _, late := range []time.Duration{0, 80 * time.Millisecond, 199 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			law := quietLaw
			law.try = func(w *world) {
				w.stoodStill(late)
				quietLaw.try(w)
			}
			v := Judge(law, func(T) Harness { return polling{plain{memlock.New()}} })
			if log := strings.Join(v.Log, "\n"); len(v.Faults) > 0 || strings.Contains(log, "void: ") {
				t.Errorf("on a machine that is %v late: %s\n%s", late, v, log)
			}
		})
	}
}
