package redlock_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// away has a master refuse connections until it is back.
func away(t *testing.T, w *wire.Wire) (back func()) {
	t.Helper()
	w.Refuse()
	w.Cut()
	return func() {
		t.Helper()
		if err := w.Accept(); err != nil {
			t.Fatal(err)
		}
	}
}

// holding has a new session hold a name on three masters.
func holding(t *testing.T, name string, args ...string) ([]*servertest.Server, *redlock.Driver, []*wire.Wire, driver.Session, driver.Claim) {
	t.Helper()
	set := startMasters(t, 3, args...)
	d, wires := wired(t, set, endless)
	s, c := session(t, d, endlessTTL), mutex(name, false)
	if g, err := s.Acquire(t.Context(), c); !g.Held || err != nil {
		t.Fatalf("a free name: %+v, %v", g, err)
	}
	everywhere(t, set, name)
	return set, d, wires, s, c
}

// renews insists that a renewal succeeds, and loses nothing.
func renews(t *testing.T, s driver.Session, when string) {
	t.Helper()
	if lost, err := renew(t, s); err != nil || len(lost) > 0 {
		t.Fatalf("%s: lost %v, error %v; want it renewed", when, lost, err)
	}
}

// misses has one of three masters lose a claim, and the session hear of it.
func misses(t *testing.T, s driver.Session, c driver.Claim, one *servertest.Server) {
	t.Helper()
	one.MustDo(t, "DEL", c.Name)
	renews(t, s, "with the other two")
	until(t, 30*time.Second, "missed", func() bool { return redlock.Has(s, c.ID) == 2 }) // they may have been faster
}

// denied insists that a renewal is none, for a reason.
func denied(t *testing.T, s driver.Session, when, reason string) {
	t.Helper()
	if lost, err := renew(t, s); err == nil || len(lost) > 0 || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: lost %v, error %v; want no renewal, since %q", when, lost, err, reason)
	}
}

// The third master has lost a claim and is taken in again. That is no vote for the renewal in which
// it happens, nor for a later one unless a majority had the claim in that one without it: somebody
// may have held the name while the key was gone.
func TestAMasterThatIsTakenInCountsLater(t *testing.T) {
	t.Parallel()
	set, _, wires, s, c := holding(t, "counts")
	misses(t, s, c, set[2])
	const reason = `1 of 3 masters have renewed "counts", want 2 or more that had it before and vote`
	back := away(t, wires[1])
	denied(t, s, "the renewal that takes the third one in", reason)
	if !ours(t, set[2], c.Name) {
		t.Fatal("a master where the name is free was not taken in")
	}
	denied(t, s, "the next one, after one of which a majority heard nothing", reason)
	back()
	renews(t, s, "with all three")
	away(t, wires[1])
	renews(t, s, "with the one that was taken in, when a majority had the claim in the last renewal")
	if held, err := s.Release(t.Context(), c); !held || err != nil {
		t.Errorf("release: held %v, %v", held, err)
	}
	freeForGood(t, c.Name, set[0], set[2])
}

// A master has lost its memory and waits for its vote. It is taken in, so that nobody else has it
// when it votes, and counts for nothing until then: a vote that it has forgotten may count for
// somebody else.
func TestAMasterThatWaitsIsTakenInAndDoesNotCount(t *testing.T) {
	t.Parallel()
	for memory, args := range memories {
		t.Run(memory, func(t *testing.T) {
			t.Parallel()
			set, d, wires, s, c := holding(t, "waits", args...)
			if err := set[2].Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			until(t, 30*time.Second, "taken in", func() bool {
				_, _ = d.Masters(t.Context()) // nobody asks for a vote, which would show that it has restarted
				renews(t, s, "with the two that vote")
				return ours(t, set[2], c.Name) && record(t, set[2], "run") != "" && record(t, set[2], "until") != "0" && !votes(t, set[2])
			})
			renews(t, s, "with the two that vote, and the third taken in")
			back := away(t, wires[1])
			denied(t, s, "with one that votes and one that waits", "2 of 3 masters answered, and 1 of these refused, want 2 or more that do not")
			back()
			renews(t, s, "with the two that vote again")
			waited(t, d, set[2])
			away(t, wires[1])
			renews(t, s, "with the master that has waited, and was taken in before")
		})
	}
}

// A master was taken in and has restarted since, with its vote and its key in its log. What it had
// not written yet when it went down may have been a vote for somebody else, so it counts when it
// has waited for that.
func TestAMasterThatRestartsAfterItWasTakenInDoesNotCount(t *testing.T) {
	t.Parallel()
	set, _, wires, s, c := holding(t, "restarts", kept...)
	misses(t, s, c, set[2])
	renews(t, s, "with the first two, which takes the third one in")
	until(t, 30*time.Second, "known to be taken in", func() bool { return redlock.Has(s, c.ID) == 3 })
	if err := set[2].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	away(t, wires[1])
	denied(t, s, "with one that has restarted", `1 of 3 masters have renewed "restarts"`)
}

// A key has gone, and nobody has noticed. It is not made anew as if it had been there.
func TestAKeyThatWentUnnoticedIsMissed(t *testing.T) {
	t.Parallel()
	set, _, wires, s, c := holding(t, "unnoticed")
	set[2].MustDo(t, "DEL", c.Name)
	away(t, wires[1])
	denied(t, s, "with a master that has lost it", `1 of 3 masters have renewed "unnoticed"`)
}

// Two of three masters restart at once. A renewal says so, as long as they wait.
func TestARenewalSaysWhichMastersWait(t *testing.T) {
	t.Parallel()
	set, _, _, s, c := holding(t, "says")
	for _, one := range set[1:] {
		if err := one.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	until(t, 30*time.Second, "taken in by both", func() bool {
		var lost []driver.Loss
		if lost, err = renew(t, s); err == nil || len(lost) > 0 {
			t.Fatalf("with one master that votes: lost %v, error %v; want no renewal", lost, err)
		}
		return ours(t, set[1], c.Name) && ours(t, set[2], c.Name)
	})
	denied(t, s, "with two that wait", "3 of 3 masters answered, and 2 of these refused, want 2 or more that do not")
}

// A claim lost so many masters that it can never be renewed: it is lost, although it was taken in
// again where it was gone.
func TestWhatAMajorityLostIsLost(t *testing.T) {
	t.Parallel()
	set, _, _, s, c := holding(t, "lost")
	misses(t, s, c, set[2])
	set[1].MustDo(t, "DEL", c.Name)
	if lost, err := renew(t, s); err != nil || !slices.Equal(lost, []driver.Loss{{ID: c.ID, Err: driver.ErrGone}}) {
		t.Errorf("one of three masters had it all the time, and another one has it again: lost %v, error %v; want it lost", lost, err)
	}
	if _, err := s.Release(t.Context(), c); err != nil {
		t.Errorf("release: %v", err)
	}
	freeForGood(t, c.Name, set...)
}

// What is asked of a master that was taken in goes for it as for the others.
func TestAMasterThatWasTakenInIsLeftAndBroken(t *testing.T) {
	t.Parallel()
	taken := func(t *testing.T, name string) ([]*servertest.Server, *redlock.Driver, driver.Session, driver.Claim) {
		set, d, _, s, c := holding(t, name)
		if err := set[2].Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, 30*time.Second, "taken in", func() bool {
			renews(t, s, "with the two that vote")
			return ours(t, set[2], name)
		})
		return set, d, s, c
	}
	t.Run("requeue", func(t *testing.T) {
		t.Parallel()
		set, d, s, c := taken(t, "requeue")
		next := mutex(c.Name, true)
		if _, held, err := s.(driver.Requeuer).Requeue(t.Context(), c, next); !held || err != nil {
			t.Fatalf("it was held until then: %v, %v", held, err)
		}
		waited(t, d, set[2])
		within(t, "the next claim", func(ctx context.Context) error {
			_, err := acquire(ctx, s, next)
			return err
		})
		until(t, 30*time.Second, "that of the next claim", func() bool { return !strings.Contains(set[2].MustDo(t, "GET", c.Name), c.ID) })
	})
	t.Run("break", func(t *testing.T) {
		t.Parallel()
		set, d, s, c := taken(t, "break")
		line, err := d.Line(t.Context(), c.Name)
		if err != nil || len(line.Claims) != 1 || !line.Claims[0].Held {
			t.Fatalf("the line: %+v, %v", line, err)
		}
		if err := d.Break(t.Context(), c.Name, line.Claims[0].PublicID, line.Claims[0].Fence, false); err != nil {
			t.Fatal(err)
		}
		if v := set[2].MustDo(t, "GET", c.Name); v[27] != '!' {
			t.Errorf("the master that was taken in shows %q, want it marked", v)
		}
		if lost, err := renew(t, s); err != nil || !slices.Equal(lost, []driver.Loss{{ID: c.ID, Err: driver.ErrBroken}}) {
			t.Errorf("lost %v, error %v; want it broken", lost, err)
		}
	})
	t.Run("break now", func(t *testing.T) {
		t.Parallel()
		set, d, s, c := taken(t, "break now")
		line, err := d.Line(t.Context(), c.Name)
		if err != nil || len(line.Claims) != 1 {
			t.Fatalf("the line: %+v, %v", line, err)
		}
		if err := d.Break(t.Context(), c.Name, line.Claims[0].PublicID, line.Claims[0].Fence, true); err != nil {
			t.Fatal(err)
		}
		_, _ = renew(t, s)
		freeForGood(t, c.Name, set...)
	})
}

// The order to take a master in is held up, and arrives when the claim is long released. It must
// not stand there until its time is over.
func TestATakingInThatIsHeldUpIsTakenBack(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d, wires := wired(t, set, "?node_timeout=500ms")
	s, c := session(t, d, time.Minute), mutex("held up", false)
	if g, err := s.Acquire(t.Context(), c); !g.Held || err != nil {
		t.Fatalf("a free name: %+v, %v", g, err)
	}
	everywhere(t, set, c.Name)
	set[2].MustDo(t, "DEL", c.Name)
	var sent atomic.Bool
	deliver := wires[2].Hold(func(packet []byte) bool {
		mine := bytes.Contains(packet, []byte("ilq1:"+c.ID+"-"))
		sent.Store(sent.Load() || mine)
		return mine
	})
	until(t, 30*time.Second, "asked to be taken in", func() bool {
		_, _ = renew(t, s)
		return sent.Load()
	})
	before := scripts(t, set[2])
	if held, err := s.Release(t.Context(), c); !held || err != nil {
		t.Fatalf("release: %v, %v", held, err)
	}
	until(t, 30*time.Second, "left by the claim", func() bool { return scripts(t, set[2]) > before })
	if !deliver() {
		t.Fatal("nothing was held up")
	}
	freeForGood(t, c.Name, set...)
}

// scripts is how many scripts a server has run.
func scripts(t *testing.T, s *servertest.Server) (n int) {
	t.Helper()
	for line := range strings.Lines(s.MustDo(t, "INFO", "commandstats")) {
		var calls int
		if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,", &calls); err == nil {
			n += calls
		}
	}
	return n
}

// However many masters are to be taken in, a renewal asks each of them once for every hundred
// claims.
func TestARenewalAsksEachMasterOnce(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	s := session(t, open(t, urlOf(addrs(set))+endless), endlessTTL)
	const claims, renewals = 150, 10
	occupy(t, "once 0", set[0]) // it cannot be taken in
	for i := range claims {
		if g, err := s.Acquire(t.Context(), mutex(fmt.Sprint("once ", i), false)); !g.Held || err != nil {
			t.Fatalf("a free name: %+v, %v", g, err)
		}
	}
	everywhere(t, set, fmt.Sprint("once ", claims-1))
	renews(t, s, "with all three")
	for _, one := range set {
		one.MustDo(t, "CONFIG", "RESETSTAT")
	}
	for i := range renewals {
		set[1].MustDo(t, "DEL", fmt.Sprint("once ", i+1)) // it is missed, and taken in
		renews(t, s, "one by one")
	}
	for i, one := range set {
		asked := scripts(t, one)
		if asked > 2*renewals+2 { // the one before may be late
			t.Errorf("master %d was asked %d times in %d renewals of %d claims, want twice in each", i+1, asked, renewals, claims)
		}
	}
}

// What a master shows of a name decides whether it is taken in.
func TestWhereAMasterIsTakenIn(t *testing.T) {
	t.Parallel()
	one := servertest.Redis(t)
	const (
		vote = "il:{redlock}:vote"
		high = "il:{redlock}:high"
	)
	id, other := driver.NewID(), driver.NewID()
	value := "ilq1:" + id + "-1234567890123456 il:push:1 {}"
	theirs := "ilq1:" + other + "-1234567890123456 il:push:2 {}"
	for what, q := range map[string]struct {
		set                 func(name string) [][]string // commands before
		waits               bool                         // it has no vote
		old                 bool                         // the claim is said to have it
		taken               bool
		lacks               string // as the script says of it
		value, counter, top string // after; counters in front of a token of 1000
	}{
		"free":                           {taken: true, value: value, counter: "1000", top: "1001000"},
		"free, and it waits":             {waits: true, taken: true, value: value, counter: "1000", top: "1001000"},
		"free, and it was to be renewed": {old: true, lacks: "2 0"},
		"another claim of ours":          {set: func(n string) [][]string { return [][]string{{"SET", n, theirs}} }, lacks: "2 0", value: theirs},
		"another program's":              {set: func(n string) [][]string { return [][]string{{"SET", n, "x"}} }, lacks: "2 0", value: "x"},
		"somebody's data":                {set: func(n string) [][]string { return [][]string{{"HSET", n, "a", "b"}} }, lacks: "2 0", value: "WRONGTYPE"},
		"its own, and broken": {set: func(n string) [][]string {
			return [][]string{{"SET", n, strings.Replace(value, "-1234567890123456", "!1234567890123456", 1)}}
		}, lacks: "3 0", value: strings.Replace(value, "-1234567890123456", "!1234567890123456", 1)},
		"its own, by an order without an answer": {set: func(n string) [][]string { return [][]string{{"SET", n, value}} }, taken: true, value: value, counter: "1000", top: "1001000"},
		"a line":                                 {set: stood(other, "7"), lacks: "2 6", counter: "7"},
		"a line, and it waits":                   {set: stood(other, "7"), waits: true, taken: true, value: strings.Replace(value, "-1234567890123456", "+1234567890123456", 1), counter: "1001", top: "1001000"},
		"its own place, and it waits":            {set: stood(id, "7"), waits: true, taken: true, value: value, counter: "1000", top: "1001000"},
		"a counter ahead":                        {set: func(n string) [][]string { return [][]string{{"SET", counterOf(n), "1900"}} }, taken: true, value: value, counter: "1900", top: "1001000"},
		"a counter further ahead than is known":  {set: func(n string) [][]string { return [][]string{{"SET", counterOf(n), "2064"}} }, lacks: "2 2064", counter: "2064"},
		"a word for a counter":                   {set: func(n string) [][]string { return [][]string{{"SET", counterOf(n), "abc"}} }, lacks: "2 0", counter: "abc"},
		"a list for a counter":                   {set: func(n string) [][]string { return [][]string{{"RPUSH", counterOf(n), "a"}} }, lacks: "2 0", counter: "WRONGTYPE"},
		"a word for the largest counter":         {set: func(string) [][]string { return [][]string{{"SET", high, "abc"}} }, lacks: "2 0"},
		"a largest counter ahead":                {set: func(string) [][]string { return [][]string{{"SET", high, "1000"}} }, taken: true, value: value, counter: "1000", top: "1000"},
	} {
		t.Run(what, func(t *testing.T) {
			one.MustDo(t, "FLUSHALL")
			const name = "name"
			if !q.waits {
				one.MustDo(t, "SET", vote, "print")
			}
			if q.set != nil {
				for _, command := range q.set(name) {
					one.MustDo(t, command...)
				}
			}
			run := []string{"EVAL", redlock.HoldText(), "6", vote, high, name, counterOf(name), lineOf(name), claimsOf(name), "60000", "print", "1", value, "1000", "2000"}
			if q.old {
				run = []string{"EVAL", redlock.HoldText(), "3", vote, high, name, "60000", "print", "1", "ilq1:" + id}
			}
			want := "1"
			if q.waits {
				want = "0"
			}
			if !q.taken {
				want += " " + q.lacks
			}
			if got := strings.Join(strings.Fields(one.MustDo(t, run...)), " "); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
			get := func(key string) string {
				got, err := one.Do("GET", key)
				if err != nil {
					got = "WRONGTYPE"
				}
				return got
			}
			if got := get(name); got != cmp.Or(q.value, "(nil)") {
				t.Errorf("at the name: %q, want %q", got, q.value)
			}
			if got := get(counterOf(name)); got != cmp.Or(q.counter, "(nil)") {
				t.Errorf("its counter: %q, want %q", got, q.counter)
			}
			if got := get(high); q.taken && got != q.top {
				t.Errorf("its largest counter: %q, want %q", got, q.top)
			}
			if q.taken && one.MustDo(t, "PTTL", name) == "-1" {
				t.Error("it stands there for ever")
			}
			if q.taken && (one.MustDo(t, "ZSCORE", lineOf(name), id) != "(nil)" || one.MustDo(t, "HEXISTS", claimsOf(name), id) != "0") {
				t.Error("who holds stands in line, too")
			}
		})
	}
	t.Run("a damaged counter beside a name that is renewed", func(t *testing.T) {
		one.MustDo(t, "FLUSHALL")
		one.MustDo(t, "MSET", vote, "print", counterOf("name"), "abc")
		one.MustDo(t, "SET", "beside", value, "PX", "9000")
		got := one.MustDo(t, "EVAL", redlock.HoldText(), "7", vote, high, "beside", "name", counterOf("name"), lineOf("name"), claimsOf("name"),
			"60000", "print", "2", "ilq1:"+id, value, "1000", "2000")
		if got = strings.Join(strings.Fields(got), " "); got != "1 4 0" || len(one.MustDo(t, "PTTL", "beside")) != len("60000") {
			t.Errorf("it says %q, want \"1 4 0\", and that the other name has 60 s", got)
		}
	})
	t.Run("a vote in another set", func(t *testing.T) {
		one.MustDo(t, "FLUSHALL")
		one.MustDo(t, "SET", vote, "another")
		_, err := one.Do("EVAL", redlock.HoldText(), "6", vote, high, "name", "c", "l", "h", "60000", "print", "1", value, "1000", "2000")
		if err == nil || !strings.Contains(err.Error(), "NOVOTE") || one.MustDo(t, "EXISTS", "name") != "0" {
			t.Errorf("error %v, want NOVOTE and nothing done", err)
		}
	})
}

func counterOf(name string) string { return "il:{" + name + "}:qfence:" + name }
func lineOf(name string) string    { return "il:{" + name + "}:qline:" + name }
func claimsOf(name string) string  { return "il:{" + name + "}:qclaims:" + name }

// stood returns what puts a claim into the line of a name that is free.
func stood(id, counter string) func(name string) [][]string {
	return func(name string) [][]string {
		return [][]string{
			{"SET", counterOf(name), counter},
			{"ZADD", lineOf(name), "1234567890123456", id},
			{"HSET", claimsOf(name), id, "w 60000 1 il:push:1 print {}"},
		}
	}
}
