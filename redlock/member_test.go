package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock"
)

// until looks again and again until what is wanted is there.
func until(t *testing.T, limit time.Duration, what string, look func() bool) {
	t.Helper()
	redistest.Until(t, limit, "not "+what, look)
}

// refused insists that opening fails with driver.ErrRefused and names all of these.
func refused(t *testing.T, url string, names ...string) {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), url)
	if err == nil {
		_ = d.Close(t.Context())
		t.Fatalf("opened %s, want it refused for %q", url, names)
	}
	if !errors.Is(err, driver.ErrRefused) {
		t.Errorf("error %v: want it to match %v", err, driver.ErrRefused)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %q", err, name)
		}
	}
}

func TestSetsThatAreNoneAreRefused(t *testing.T) {
	set := startMasters(t, 3)
	replica := servertest.Redis(t, "--replicaof", "127.0.0.1 "+strings.TrimPrefix(set[0].Addr(), "127.0.0.1:"))
	until(t, 30*time.Second, "a replica", func() bool {
		info, err := replica.Do("INFO", "replication")
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	all := addrs(set)
	refused(t, urlOf(all[:2]), "2 masters", "odd")
	refused(t, urlOf([]string{all[0], all[1], all[0]}), "master 1 ("+all[0]+")", "master 3 ("+all[0]+")", "same server")
	refused(t, urlOf([]string{all[0], all[1], replica.Addr()}), "master 3 ("+replica.Addr()+")", "slave of 127.0.0.1:"+strings.TrimPrefix(all[0], "127.0.0.1:"))
	d := open(t, urlOf(all)+"?max_ttl=2s")
	defer func() { _ = d.Close(t.Context()) }()
	if _, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: 3 * time.Second}); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "TTL 3s") || !strings.Contains(err.Error(), "2s") {
		t.Errorf("a TTL above the longest: %v, want it refused with both", err)
	}
}

// A MaxTTL that no session can have, or for which a set would never be out of use, is refused
// before a master has it on record.
func TestAMaxTTLThatIsOfNoUseIsRefused(t *testing.T) {
	set := startMasters(t, 3)
	refused(t, urlOf(addrs(set))+"?max_ttl=99ms", "MaxTTL 99ms", "100ms", "24h0m0s")
	refused(t, urlOf(addrs(set))+"?max_ttl=24h1ms", "MaxTTL 24h0m0.001s")
	for i, server := range set {
		if keys := server.MustDo(t, "DBSIZE"); keys != "0" {
			t.Errorf("master %d keeps %s keys, want none", i+1, keys)
		}
	}
	session(t, open(t, urlOf(addrs(set))+"?max_ttl=100ms"), 100*time.Millisecond)
}

// A master that throws keys away when its memory is full is named to whoever opens, with its
// policy.
func TestAMasterThatEvictsIsNamed(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	set[1].MustDo(t, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	var conns []redisconn.Conn
	for _, s := range set {
		conns = append(conns, redistest.Rueidis(t, s.Addr()))
	}
	said := &journal{}
	d, err := redlock.New(t.Context(), conns, &redlock.Options{Logger: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(t.Context()) }()
	if text := said.String(); strings.Count(text, "throws locks away") != 1 || !strings.Contains(text, `"master 2"`) || !strings.Contains(text, "volatile-lru") {
		t.Errorf("it says %q, want that master 2 evicts, and its policy", text)
	}
}

// journal is a log that many write.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Another number of masters, other masters or another MaxTTL is refused while the set is in use,
// and welcome afterwards.
func TestAnotherSetIsRefusedWhileOneIsInUse(t *testing.T) {
	five := startMasters(t, 5)
	all := addrs(five)
	three := open(t, urlOf(all[:3])+"?max_ttl=1s")
	refused(t, urlOf(all)+"?max_ttl=1s", "3 masters", "5 masters", "MaxTTL 1s")
	refused(t, urlOf(all[:3])+"?max_ttl=2s", "MaxTTL 1s", "MaxTTL 2s")
	if _, err := driver.OpenURL(t.Context(), urlOf([]string{all[0], all[3], all[4]})+"?max_ttl=1s"); err == nil || !strings.Contains(err.Error(), "1 of 3 masters know") {
		t.Errorf("two masters exchanged at once: %v, want to hear that one of three knows the set", err)
	}
	s := session(t, three, time.Second)
	g, err := acquire(t.Context(), s, mutex("drained", false))
	if err != nil {
		t.Fatal(err)
	}
	if err := three.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var grown *redlock.Driver
	until(t, 20*time.Second, "a set of five after the one of three was given up", func() bool {
		d, err := driver.OpenURL(t.Context(), urlOf(all)+"?max_ttl=1s")
		if err == nil {
			grown = d.(*redlock.Driver) //nolint:forcetypeassert // the scheme is ours
		}
		return err == nil
	})
	// The new masters know what was drawn in the old set: three of the five, two of them new, are
	// enough.
	for _, i := range []int{0, 1} {
		if err := five[i].Pause(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = five[i].Resume() }()
	}
	next, err := acquire(t.Context(), session(t, grown, time.Second), mutex("drained", true))
	if err != nil || next.Fence < g.Fence+driver.Stride {
		t.Errorf("in the new set: token %d after %d, error %v", next.Fence, g.Fence, err)
	}
}

// A master that has lost its memory has no vote until the longest TTL has passed, also not for a
// program that comes anew; then it has one again, and the counters of the others.
func TestRejoin(t *testing.T) {
	set := startMasters(t, 3)
	url := urlOf(addrs(set)) + "?max_ttl=2s"
	d := open(t, url)
	s := session(t, d, 2*time.Second)
	holds := mutex("rejoin", false)
	g, err := acquire(t.Context(), s, holds)
	if err != nil {
		t.Fatal(err)
	}
	if err := set[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	// With one more away only the master that forgot and one that remembers are left: no majority
	// for anybody, although the claim is gone from one of them.
	if err := set[1].Pause(); err != nil {
		t.Fatal(err)
	}
	resume := func() { _ = set[1].Resume() }
	defer resume()
	tried := 0
	for time.Since(began) < time.Second {
		try := mutex("rejoin", false)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		got, err := s.Acquire(ctx, try)
		cancel()
		if got.Held {
			t.Fatalf("after %v the master that has lost its memory votes: token %d while %d is held", time.Since(began), got.Fence, g.Fence)
		}
		if err == nil || !strings.Contains(err.Error(), "1 of 3 masters") && !strings.Contains(err.Error(), "0 of 3 masters") && !strings.Contains(err.Error(), "refused, want 2 or more that do not") && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a try with one vote of three: %v, want to hear of it", err)
		}
		_, _ = s.Release(t.Context(), try)
		tried++
	}
	resume()
	if tried == 0 {
		t.Fatal("nothing was tried")
	}
	// Time passes, and the master votes.
	until(t, 20*time.Second, "a vote of the master that came back", func() bool {
		vote, err := set[0].Do("GET", "il:{redlock}:vote")
		return err == nil && vote != "" && vote != "(nil)"
	})
	if waited := time.Since(began); waited < 2*time.Second {
		t.Errorf("it had its vote after %v, want MaxTTL, 2s, or more", waited)
	}
	if floor, err := strconv.ParseUint(set[0].MustDo(t, "GET", "il:{redlock}:floor"), 10, 64); err != nil || floor < g.Fence {
		t.Errorf("it draws tokens above %d, %v: want above those of the others, %d", floor, err, g.Fence)
	}
	if err := set[2].Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set[2].Resume() }()
	_, _ = s.Release(t.Context(), holds)
	other := session(t, open(t, url), 2*time.Second)
	var next driver.Grant
	until(t, 30*time.Second, "a grant by the master that came back", func() bool {
		c := mutex("rejoin", true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if next, err = acquire(ctx, other, c); err == nil {
			return true
		}
		_, _ = other.Release(t.Context(), c)
		return false
	})
	if next.Fence < g.Fence+driver.Stride {
		t.Errorf("token %d after %d", next.Fence, g.Fence)
	}
}

// A master that keeps everything restarts, and what it is asked about that gets no answer: nobody
// knows then whether it has forgotten, so it keeps its vote, and is asked again.
func TestAQuestionWithoutAnswerCostsNoVote(t *testing.T) {
	set := startMasters(t, 3, redistest.Durable...)
	d, wires := wired(t, set, "")
	s := session(t, d, 10*time.Second)
	c := mutex("before", true)
	if _, err := acquire(t.Context(), s, c); err != nil {
		t.Fatal(err)
	}
	everywhere(t, set, "before")
	vote := set[0].MustDo(t, "GET", "il:{redlock}:vote")
	if vote == "" {
		t.Fatal("the master has no vote to lose")
	}

	var cut atomic.Int32
	wires[0].Filter(wire.Replies, func(reply []byte) bool {
		if !bytes.Contains(reply, []byte("appendfsync")) {
			return true
		}
		cut.Add(1)
		wires[0].Cut() // here, so that no later reply is taken for this one
		return false
	})
	if err := set[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	granted := func() bool {
		c := mutex("after", true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := acquire(ctx, s, c)
		_, _ = s.Release(t.Context(), c)
		return err == nil
	}
	now := func() string { return set[0].MustDo(t, "GET", "il:{redlock}:vote") }
	until(t, 30*time.Second, "the master is asked, and asked again", func() bool { return granted() && (cut.Load() >= 3 || now() != vote) })
	if got := now(); got != vote {
		t.Fatalf("its vote is %q, want %q: what got no answer is taken for one", got, vote)
	}

	wires[0].Filter(wire.Replies, nil)
	if err := set[1].Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set[1].Resume() }()
	until(t, 30*time.Second, "a grant with its vote", granted)
}

// Fewer than a majority: the core says that the store is unavailable, soon, and how many answered.
func TestMinority(t *testing.T) {
	set := startMasters(t, 5)
	client, err := interlock.Open(t.Context(), urlOf(addrs(set)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Mutex("before").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = lease.Release()
	for _, s := range set[:3] {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	_, err = client.Mutex("after").TryLock(t.Context())
	if !errors.Is(err, interlock.ErrUnavailable) || !strings.Contains(err.Error(), "2 of 5 masters answered, want 3") {
		t.Errorf("with two of five: %v, want %v and the count", err, interlock.ErrUnavailable)
	}
	if took := time.Since(began); took > 5*time.Second && !testing.Short() {
		t.Errorf("it took %v to say so", took)
	}
	_, err = driver.OpenURL(t.Context(), urlOf(addrs(set)))
	if err == nil || !strings.Contains(err.Error(), "2 of 5 masters answered") {
		t.Fatalf("opening with two of five: %v", err)
	}
	for i, s := range set {
		if n := strings.Count(err.Error(), fmt.Sprintf("master %d (%s)", i+1, s.Addr())); i < 3 && n != 1 || i >= 3 && n != 0 {
			t.Errorf("opening with two of five names master %d %d times: %v, want each once that does not answer", i+1, n, err)
		}
	}
}

// Connections of the user's own client work as well. It does not tell of new connections, so every
// vote is asked for.
func TestUsersClient(t *testing.T) {
	set := startMasters(t, 3)
	var conns []redisconn.Conn
	for _, s := range set {
		conns = append(conns, redistest.Rueidis(t, s.Addr()))
	}
	d, err := redlock.New(t.Context(), conns, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, d, time.Second)
	for range 3 {
		c := mutex("users", true)
		if _, err := acquire(t.Context(), s, c); err != nil {
			t.Fatal(err)
		}
		if held, err := s.Release(t.Context(), c); !held || err != nil {
			t.Errorf("release: %v, %v", held, err)
		}
	}
}

// A lease goes on while a master that has forgotten comes back, waits, and votes again in a new
// place of the set.
func TestLeaseOutlivesRejoin(t *testing.T) {
	set := startMasters(t, 5)
	url := urlOf(addrs(set)) + "?max_ttl=2s"
	client, err := interlock.Open(t.Context(), url, &interlock.Options{TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Mutex("goes on").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := set[4].Pause(); err != nil { // nobody but this program knows whose place is free
		t.Fatal(err)
	}
	defer func() { _ = set[4].Resume() }()
	if err := set[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, "a vote of the master that came back", func() bool {
		_, _ = client.Mutex("something else").TryLock(t.Context())
		vote, err := set[0].Do("GET", "il:{redlock}:vote")
		return err == nil && vote != "" && vote != "(nil)"
	})
	select {
	case <-lease.Context().Done():
		t.Errorf("the lease was lost: %v", context.Cause(lease.Context()))
	default:
	}
	if err := lease.Release(); err != nil {
		t.Errorf("release: %v", err)
	}
}
