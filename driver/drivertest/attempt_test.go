package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

type plain struct{ store *memlock.Driver }

func (p plain) Driver(T) driver.Driver { return p.store.Share() }
func (p plain) Prefix() string         { return "attempt/" }
func (p plain) TTL() time.Duration     { return time.Second }

// A fault counts at once, unless a step came too late; then the trial is void, and the next one has
// more time.
func TestATrialOnASlowMachineIsVoid(t *testing.T) {
	for _, c := range []struct {
		name      string
		void      int // trials that find a fault
		late      time.Duration
		slow      bool // a step is late
		unrenewed time.Duration
		trials    int
		next      time.Duration // the time of sessions in the second trial
		verdict   string
	}{
		{"Fault", 1, 0, false, 0, 1, 0, "is broken: a fault"},
		{"FaultAndALittleLate", 1, 100 * time.Millisecond, false, 0, 1, 0, "is broken: a fault"},
		{"FaultInTime", 1, 0, false, 999 * time.Millisecond, 1, 0, "is broken: a fault"},
		{"StoodStillOnce", 1, 300 * time.Millisecond, false, 0, 2, 3 * time.Second, ""},
		{"StoodStillTwice", 2, 300 * time.Millisecond, false, 0, 2, 3 * time.Second, "is broken: a fault"}, // sessions of 3 s bear that
		{"StoodStillAlways", 9, time.Minute, false, 0, 4, 40 * time.Second, "was not judged: the machine or the store was too slow in each of 4 trials, in the last because this process did not run for 1m0s"},
		{"TooSlowOnce", 1, 0, true, 0, 2, 2 * time.Second, ""},
		{"TooSlowAlways", 9, 0, true, 0, 4, 2 * time.Second, "was not judged: the machine or the store was too slow in each of 4 trials, in the last because a step"},
		{"UnrenewedOnce", 1, 0, false, 1500 * time.Millisecond, 2, 3 * time.Second, ""},
		{"UnrenewedAlways", 9, 0, false, time.Minute, 4, 40 * time.Second, "because the time of A's session was over for 20s"},
		{"StoodStillWithoutAFault", 0, time.Minute, false, 0, 1, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trials, last := 0, time.Duration(0)
				names := map[string]bool{}
				law := Law{Name: "Law99_Attempts", try: func(w *world) {
					trials++
					names[w.name("n")] = true
					if want := map[int]time.Duration{1: time.Second, 2: c.next}[trials]; want > 0 && w.ttl != want || w.ttl < min(last*2, bearable) {
						t.Errorf("sessions of %v in trial %d, after %v; want %v", w.ttl, trials, last, want)
					}
					last = w.ttl
					w.unrenewed("A", w.ttl)
					time.Sleep(c.unrenewed)
					w.stoodStill(c.late)
					switch {
					case trials > c.void:
					case c.slow:
						w.tooSlow("a step")
					default:
						w.fail("a fault")
					}
				}}
				v := Judge(law, func(T) Harness { return plain{memlock.New()} })
				if trials != c.trials || len(v.Faults) > 0 != (c.verdict != "") || !strings.Contains(v.String(), c.verdict) {
					t.Fatalf("%d trials, want %d and %q: %s", trials, c.trials, c.verdict, v)
				}
				if len(names) != trials {
					t.Errorf("%d trials used %d names: what one left behind is in the next one's way", trials, len(names))
				}
				if !v.Judged() && (v.Convicted() || strings.Contains(v.String(), "Law99_Attempts is broken")) || strings.Contains(c.verdict, "not judged") && v.Judged() {
					t.Errorf("not judged, and said to be broken: %s", v)
				}
				if again := strings.Count(strings.Join(v.Log, "\n"), "void: "); again != trials-1 {
					t.Errorf("the log speaks of %d void trials, want %d", again, trials-1)
				}
			})
		})
	}
}

// A session that the suite leaves alone on purpose, or has closed, excuses nothing.
func TestASessionThatIsToEndExcusesNothing(t *testing.T) {
	for name, end := range map[string]func(a *actor){"left alone": (*actor).lapse, "closed": (*actor).close} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				law := Law{Name: "Law99_Ends", try: func(w *world) {
					end(w.unrenewed("A", w.ttl))
					time.Sleep(time.Minute)
					w.fail("a fault")
				}}
				v := Judge(law, func(T) Harness { return plain{memlock.New()} })
				if !v.Convicted() || !strings.Contains(v.Faults[0], "Law99_Ends is broken: a fault") {
					t.Errorf("want the fault at once: %s %v", v, v.Log)
				}
			})
		})
	}
}

// A store that did not answer a driver in time has not broken a law; one that did not answer the
// suite has.
func TestAStoreThatDoesNotAnswerIsNotJudged(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  func(ctx context.Context) error
		verdict string
	}{
		{"InTheDriversTime", func(context.Context) error { return fmt.Errorf("server 1: %w", context.DeadlineExceeded) }, "was not judged: the machine or the store was too slow in each of 4 trials, in the last because the store did not answer in the driver's own time: server 1"},
		{"InTheSuitesTime", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "is broken: asked and got context deadline exceeded"},
		{"WaitedForSomeOfSeveral", func(context.Context) error {
			time.Sleep(tardy)
			return errors.New("2 of 5 answered")
		}, "was not judged: the machine or the store was too slow in each of 4 trials, in the last because the store did not answer in the driver's own time: 2 of 5"},
		{"AnAnswerThatTookLong", func(context.Context) error {
			time.Sleep(tardy)
			return driver.ErrGone
		}, "is broken: asked and got "},
		{"AnAnswerThatSpeaksOfTime", func(context.Context) error {
			return fmt.Errorf("%w: %w", driver.ErrGone, context.DeadlineExceeded)
		}, "is broken: asked and got "},
		{"AnotherError", func(context.Context) error { return context.Canceled }, "is broken: asked and got context canceled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				law := Law{Name: "Law99_Answers", try: func(w *world) {
					a := w.unrenewed("A", w.long())
					_, err := call(w.ctx, a, func(ctx context.Context) (int, error) { return 0, c.answer(ctx) }, nil)
					w.fail("asked and got %v", err)
				}}
				if v := Judge(law, func(T) Harness { return plain{memlock.New()} }); !strings.Contains(v.String(), c.verdict) {
					t.Errorf("want %q: %s", c.verdict, v)
				}
			})
		})
	}
}

// A bound is moved by as much as this process did not run.
func TestBoundsBearWhatTheMachineIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plain{memlock.New()}, "Law99_Bounds", "", 1, time.Second)
		defer w.end()
		a, b := w.unrenewed("A", w.long()), w.unrenewed("B", w.long())
		c := a.held(mutex(w.name("n")))
		next := b.queue(mutex(c.Name))
		w.stoodStill(150 * time.Millisecond)
		for _, x := range []struct {
			after time.Duration
			fault bool
		}{{200 * time.Millisecond, false}, {350 * time.Millisecond, true}} {
			from := time.Now()
			fault := caught(func() {
				w.until(100*time.Millisecond, func() bool { return time.Since(from) > x.after }, "never")
			})
			if (fault != nil) != x.fault {
				t.Errorf("100 ms and 150 ms late, over after %v: %+v", x.after, fault)
			}
		}
		from := time.Now()
		if f := caught(func() { b.await(next, 100*time.Millisecond) }); f == nil || time.Since(from) != 250*time.Millisecond {
			t.Errorf("waited %v, want 250ms and a fault: %+v", time.Since(from), f)
		}
		if got := w.slack(); got != 2150*time.Millisecond {
			t.Errorf("slack %v, want the harness's 2s and 150ms", got)
		}
	})
}

// What was found first counts: what the others find then may be its consequence. Of what is apart
// the certain counts.
func TestTheFirstFailureOfSeveralCounts(t *testing.T) {
	for _, c := range []struct {
		name    string
		run     func(w *world, fs ...func())
		verdict string
	}{
		{"Together", (*world).together, "Law99_Several was not judged"},
		{"Apart", (*world).apart, "Law99_Several is broken: a fault"},
		{"ApartFromWhatIsTogether", func(w *world, fs ...func()) {
			w.apart(
				func() { <-w.ctx.Done(); w.fail("a consequence") },
				func() { w.together(fs...) },
			)
		}, "Law99_Several was not judged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				law := Law{Name: "Law99_Several", try: func(w *world) {
					c.run(w,
						func() { w.sleep(time.Second); w.fail("a fault") },
						func() { w.tooSlow("a step") },
					)
				}}
				v := Judge(law, func(T) Harness { return plain{memlock.New()} })
				if !strings.Contains(v.String(), c.verdict) {
					t.Errorf("want %q: %s", c.verdict, v)
				}
			})
		})
	}
}

// A session of a part that is over excuses nothing, nor does one whose Renew the driver refused.
func TestWhatIsNotTheSuitesExcusesNothing(t *testing.T) {
	for name, try := range map[string]func(w *world){
		"a part that is over": func(w *world) {
			w.parts(
				func(w *world) { w.unrenewed("A", w.ttl); w.actor("B") },
				func(w *world) { w.sleep(time.Minute); w.fail("a fault") },
			)
		},
		"a Renew that was refused": func(w *world) {
			a := w.unrenewed("A", w.ttl)
			a.note(time.Now(), driver.Renewal{}, errors.New("refused"))
			w.sleep(time.Minute)
			w.fail("a fault")
		},
		"a Renew without a time": func(w *world) {
			a := w.unrenewed("A", w.ttl)
			a.note(time.Now(), driver.Renewal{}, nil)
			w.sleep(time.Minute)
			w.fail("a fault")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := Judge(Law{Name: "Law99_Excuses", try: try}, func(T) Harness { return plain{memlock.New()} })
				if !v.Convicted() || !strings.Contains(v.Faults[0], "Law99_Excuses is broken: a fault") {
					t.Errorf("want the fault at once: %s %v", v, v.Log)
				}
			})
		})
	}
}
