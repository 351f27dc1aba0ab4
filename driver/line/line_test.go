package line

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/driver"
)

var epoch = time.Unix(1_700_000_000, 0)

func settle(t interface{ Fatalf(string, ...any) }, l *Line) []int {
	granted, err := l.Settle(epoch, driver.Draw)
	if err != nil {
		t.Fatalf("settle: %v", err)
	}
	return granted
}

func claim(id string, k driver.Kind, weight, limit int) Claim {
	return New("s", driver.Claim{ID: id, Kind: k, Weight: weight, Limit: limit})
}

func read(id string) Claim  { return claim(id, driver.Read, 1, driver.All) }
func write(id string) Claim { return claim(id, driver.Write, driver.All, driver.All) }

func held(l *Line) string {
	s := ""
	for _, c := range l.Claims {
		if c.Held {
			s += c.ID
		}
	}
	return s
}

func TestRule_ReadersShareAndAReaderBehindAWaitingWriterWaits(t *testing.T) {
	l := &Line{Name: "n"}
	for _, c := range []Claim{read("a"), read("b"), write("W"), read("c")} {
		l.Join(c, epoch)
		settle(t, l)
	}
	if got := held(l); got != "ab" {
		t.Fatalf("held %q, want the two readers ahead of the writer", got)
	}
	for _, step := range []struct{ leave, want string }{{"a", "b"}, {"b", "W"}, {"W", "c"}} {
		l.Leave(step.leave)
		settle(t, l)
		if got := held(l); got != step.want {
			t.Fatalf("after %s left: held %q, want %q", step.leave, got, step.want)
		}
	}
}

func TestRule_SemaphoreIsFirstComeFirstServed(t *testing.T) {
	l := &Line{Name: "n"}
	for _, c := range []Claim{claim("a", driver.Permit, 2, 3), claim("b", driver.Permit, 2, 3), claim("c", driver.Permit, 1, 3)} {
		l.Join(c, epoch)
		settle(t, l)
	}
	if got := held(l); got != "a" {
		t.Fatalf("held %q: c fits beside a but must not overtake b", got)
	}
	l.Leave("a")
	settle(t, l)
	if got := held(l); got != "bc" {
		t.Fatalf("held %q, want b and c", got)
	}
}

func TestPermitsShareNoNameWithLocks(t *testing.T) {
	l := &Line{Name: "n"}
	l.Join(read("a"), epoch)
	if err := l.Admits(claim("p", driver.Permit, 1, 3)); !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("a permit beside a read lock: %v, want ErrRefused", err)
	}
	if err := l.Admits(write("w")); err != nil {
		t.Fatalf("a writer beside a reader: %v", err)
	}
	for _, c := range []Claim{claim("x", driver.Permit, 0, 1), claim("x", driver.Permit, 2, 1), claim("x", driver.Permit, -1, 1), claim("x", driver.Permit, 1, math.MaxInt64)} {
		if err := (&Line{}).Admits(c); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("weight %d limit %d: %v, want ErrRefused", c.Weight, c.Limit, err)
		}
	}
}

func TestBreakHitsTheClaimAndTokenItNamesOrNothing(t *testing.T) {
	l := &Line{Name: "n"}
	l.Join(write("a"), epoch)
	l.Join(write("b"), epoch)
	settle(t, l)
	a := l.Claims[0]
	if _, err := l.Break(driver.PublicID("a"), a.Fence+driver.Stride, false); !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("another token: %v", err)
	}
	if _, err := l.Break(driver.PublicID("z"), a.Fence, false); !errors.Is(err, driver.ErrRefused) {
		t.Fatalf("another claim: %v", err)
	}
	if l.Claims[0].Broken || len(l.Claims) != 2 {
		t.Fatal("a refused break changed the line")
	}
	if _, err := l.Break(driver.PublicID("a"), a.Fence, false); err != nil {
		t.Fatal(err)
	}
	if settle(t, l); held(l) != "a" {
		t.Fatalf("held %q: a broken holder keeps the next out until it left", held(l))
	}
	if _, wasHeld := l.Leave("a"); wasHeld {
		t.Error("releasing a broken claim must not say that it was held")
	}
	if settle(t, l); held(l) != "b" {
		t.Fatalf("held %q, want b", held(l))
	}
}

// Random histories: the rule holds after every step, nobody who holds is ever put back, and exclusive tokens grow by
// at least Stride in the order of grants.
func TestProperty_HeldStaysHeldAndTokensGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Line{Name: "n"}
		permits := rapid.Bool().Draw(t, "permits")
		n, last := 0, uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := map[string]bool{}
			for _, c := range l.Claims {
				before[c.ID] = c.Held
			}
			switch leave := rapid.Bool().Draw(t, "leave"); {
			case leave && len(l.Claims) > 0:
				l.Leave(l.Claims[rapid.IntRange(0, len(l.Claims)-1).Draw(t, "who")].ID)
			default:
				n++
				c := read(fmt.Sprint(n))
				if permits {
					limit := rapid.IntRange(1, 5).Draw(t, "limit")
					c = claim(fmt.Sprint(n), driver.Permit, rapid.IntRange(1, limit).Draw(t, "weight"), limit)
				} else if rapid.Bool().Draw(t, "exclusive") {
					c = write(fmt.Sprint(n))
				}
				fits := l.Fits(c)
				l.Join(c, epoch)
				settle(t, l)
				if got := l.Claims[l.Find(c.ID)].Held; got != fits {
					t.Fatalf("claim %+v: Fits said %v, Settle %v", c, fits, got)
				}
			}
			for _, i := range settle(t, l) {
				if c := l.Claims[i]; c.Kind.Exclusive() {
					if c.Fence < last+driver.Stride {
						t.Fatalf("token %d after %d", c.Fence, last)
					}
					last = c.Fence
				}
			}
			sum := 0
			for _, c := range l.Claims {
				sum += c.Weight
				if c.Held != (sum <= c.Limit) {
					t.Fatalf("rule: %+v with %d up to it", c, sum)
				}
				if before[c.ID] && !c.Held {
					t.Fatalf("%s was held and is not", c.ID)
				}
				if c.Kind.Exclusive() && c.Held {
					last = max(last, c.Fence)
				}
			}
		}
	})
}
