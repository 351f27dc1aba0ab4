package drivertest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// slow is a store that keeps every law, and takes its time.
type slow struct {
	store      *memlock.Driver
	answer     time.Duration // how late each answer is
	wakeUp     time.Duration // how late the answer of a Wait is
	silent     int64         // every so many calls one is carried out and given up by the driver; 0: none
	closeFails error
	calls      atomic.Int64
}

func (h *slow) Driver(T) driver.Driver { return &slowDriver{h.store.Share(), h} }
func (h *slow) Prefix() string         { return "slow/" }
func (h *slow) TTL() time.Duration     { return time.Second }
func (h *slow) Cannot(string) string   { return "only time is tried here" }

func (h *slow) Stall(_ T, d driver.Driver, way Way) func() {
	if way == Replies {
		return d.(*slowDriver).Driver.StallReplies()
	}
	return d.(*slowDriver).Driver.Stall()
}

type slowDriver struct {
	*memlock.Driver
	h *slow
}

// late passes an answer on when it is time.
func late[R any](ctx context.Context, h *slow, by time.Duration, r R, err error) (R, error) {
	silent := h.silent > 0 && h.calls.Add(1)%h.silent == 0
	if silent {
		by = tardy
	}
	if by == 0 {
		return r, err
	}
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(by):
		if silent && err == nil {
			err = errors.New("2 of 5 answered")
		}
	}
	return r, err
}

func (d *slowDriver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := d.Driver.Open(ctx, spec)
	return late[driver.Session](ctx, d.h, d.h.answer, slowSession{s, d.h}, err)
}

func (d *slowDriver) Close(ctx context.Context) error {
	_ = d.Driver.Close(ctx) // is never an error
	if d.h.closeFails == nil {
		return nil
	}
	_, err := late(ctx, d.h, d.h.answer, 0, d.h.closeFails)
	return err
}

type slowSession struct {
	driver.Session
	h *slow
}

func (s slowSession) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := s.Session.Acquire(ctx, c)
	return late(ctx, s.h, s.h.answer, g, err)
}

func (s slowSession) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := s.Session.Wait(ctx, c)
	return late(ctx, s.h, max(s.h.answer, s.h.wakeUp), g, err)
}

func (s slowSession) Release(ctx context.Context, c driver.Claim) (bool, error) {
	held, err := s.Session.Release(ctx, c)
	return late(ctx, s.h, s.h.answer, held, err)
}

func (s slowSession) Renew(ctx context.Context) (driver.Renewal, error) {
	r, err := s.Session.Renew(ctx)
	return late(ctx, s.h, s.h.answer, r, err)
}

func (s slowSession) Nudge() <-chan struct{} { return s.Session.(driver.Nudger).Nudge() }

// A driver that is slow keeps the laws, or is not judged where it gave up asking; it is never said
// to break one.
func TestASlowDriverIsNotConvicted(t *testing.T) {
	for name, c := range map[string]struct {
		h      *slow
		judged bool
	}{
		"Answers":  {&slow{answer: 100 * time.Millisecond}, true},
		"WakeUps":  {&slow{wakeUp: time.Second}, true},
		"GivesUp":  {&slow{silent: 61}, false},
		"OftenSo":  {&slow{silent: 7}, false},
		"SlowCall": {&slow{answer: 300 * time.Millisecond}, true},
		"TooSlow":  {&slow{answer: 700 * time.Millisecond}, false},
		"Stalled":  {&slow{answer: 3 * time.Second}, false},
	} {
		for _, law := range Laws() {
			t.Run(name+"/"+law.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &slow{store: memlock.New(), answer: c.h.answer, wakeUp: c.h.wakeUp, silent: c.h.silent}
					v := Judge(law, func(T) Harness { return h })
					if v.Convicted() || c.judged && !v.Judged() {
						t.Errorf("a driver that is only slow is convicted: %s", v)
					}
				})
			})
		}
	}
}

// What Close of a driver answers when a trial is over follows the same rules.
func TestCloseOfADriverIsJudged(t *testing.T) {
	for verdict, answer := range map[string]time.Duration{"is broken: Close of the driver": 0, "was not judged": tardy} {
		synctest.Test(t, func(t *testing.T) {
			v := Judge(Law{Name: "Law99_Close", try: func(*world) {}}, func(T) Harness {
				return &slow{store: memlock.New(), answer: answer, closeFails: errors.New("no")}
			})
			if len(v.Faults) != 1 || !strings.Contains(v.Faults[0], "Law99_Close "+verdict) {
				t.Errorf("closed with an error after %v, want %q: %s", answer, verdict, v)
			}
		})
	}
}

// restarted is a store that keeps its claims over a restart, which cuts every connection.
type restarted struct {
	plain
	cut *bool
}

func (h restarted) Driver(t T) driver.Driver {
	return &restartedDriver{h.plain.Driver(t), *h.cut, h.cut}
}
func (h restarted) Restart(T) { *h.cut = true }

type restartedDriver struct {
	driver.Driver
	after bool // opened after the restart
	cut   *bool
}

func (d *restartedDriver) Traits() driver.Traits {
	t := d.Driver.Traits()
	t.Survives.Restart = true
	return t
}

func (d *restartedDriver) Close(ctx context.Context) error {
	if err := d.Driver.Close(ctx); err != nil || d.after || !*d.cut {
		return err
	}
	return errors.New("terminating connection due to administrator command")
}

// A driver whose connections a restart has cut may say so when it is closed.
func TestCloseMayFailAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if v := Judge(onceHeldLaw, func(T) Harness { return restarted{plain{memlock.New()}, new(bool)} }); len(v.Faults) > 0 {
			t.Error(v)
		}
	})
}
