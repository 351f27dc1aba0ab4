package broken

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/examples/versioned"
)

// moreSwapping are faults of drivers whose calls are several requests.
var moreSwapping = []Driver{
	{
		Name: "ReleaseReads", Law: "Law13_NothingStays", Says: "still keeps others out after its only other claim was released while a request",
		Fault: "Release does not write the row where the claim does not stand yet, so that the swap of its Acquire, which arrives later, finds the version it knows.",
		table: &tableFault{swap: func(ctx context.Context, t versioned.Table, name string, value []byte, version int64) (bool, error) {
			if len(claimsOf(value)) == 0 { // nobody is left: somebody was there before, or there is nothing to write
				before, now, err := t.Load(ctx, name)
				if err != nil {
					return false, err
				}
				if now == version && len(claimsOf(before)) == 0 {
					return true, nil
				}
			}
			return t.CompareAndSwap(ctx, name, value, version)
		}},
	},
	{
		Name: "SwapNotSent", Law: "Also_Outcomes", Says: "says that nothing was changed",
		Fault: "Whatever fails was not sent, also a swap that was.",
		table: &tableFault{fail: func(err error) error { return fmt.Errorf("%w: %w", driver.ErrNotSent, err) }},
	},
	{
		Name: "WaitersAreImmortal", Law: "Law08_Expiry", Says: "is held all the while",
		Fault: "Only what is held expires, so that a writer which died while it waited keeps new readers out for as long as the old ones stay.",
		table: &tableFault{load: func(value []byte) []byte {
			return edited(value, func(r *row, id string, l *life) {
				if i := r.Find(id); i >= 0 && !r.Claims[i].Held {
					l.Beat = rand.Uint64() // as if it had just been renewed
				}
			})
		}},
	},
	{
		Name: "RenewsForSeconds", Law: "Law08_Expiry", Says: "before the time of",
		Fault: "A renewal gives the claim its TTL in whole seconds, as EXPIRE does.",
		table: &tableFault{swap: func(ctx context.Context, t versioned.Table, name string, value []byte, version int64) (bool, error) {
			return t.CompareAndSwap(ctx, name, edited(value, func(_ *row, _ string, l *life) {
				if l.Beat > 1 && l.TTL > time.Second {
					l.TTL = l.TTL.Truncate(time.Second)
				}
			}), version)
		}},
	},
	{
		Name: "SecondsOnly", Law: "Law08_Expiry", Says: "before the time of",
		Fault: "The store keeps the TTL in whole seconds, at least one, and Valid says what was asked for.",
		new: func() *fault {
			return &fault{
				opens: func(l *layer, ctx context.Context, spec driver.Spec) (driver.Session, error) {
					if spec.TTL > time.Second {
						spec.TTL = spec.TTL.Truncate(time.Second)
					}
					return l.memory.Open(ctx, spec)
				},
				validIn: func(s *session, given time.Duration) time.Duration { return max(given, s.spec.TTL) },
			}
		},
	},
	{
		Name: "OneSecondAtLeast", Law: "Law08_Expiry", Says: "before the time of",
		Fault: "A session of less than a second is said to be valid for one.",
		new: func() *fault {
			return &fault{valid: func(given time.Duration) time.Duration { return max(given, time.Second) }}
		},
	},
}

// row is what examples/versioned writes.
type row struct {
	line.Line
	Lives map[string]*life
}

type life struct {
	Owner driver.Owner
	TTL   time.Duration
	Beat  uint64
}

// edited returns a row in which each claim's life has gone through f.
func edited(value []byte, f func(r *row, id string, l *life)) []byte {
	var r row
	if err := json.Unmarshal(value, &r); err != nil {
		panic(err) // the driver has written it
	}
	for id, l := range r.Lives {
		f(&r, id, l)
	}
	value, err := json.Marshal(r)
	if err != nil {
		panic(err) // it was read from that
	}
	return value
}

// claimsOf returns the claims that stand in a row.
func claimsOf(value []byte) []line.Claim {
	var r row
	if len(value) > 0 {
		if err := json.Unmarshal(value, &r); err != nil {
			panic(err)
		}
	}
	return r.Claims
}
