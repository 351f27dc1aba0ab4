package memcachedlock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// foreign is a lock of another program.
type foreign struct {
	prefix string
	try    func(name string) bool
	give   func(name string)
}

// byHand is the recipe as people write it: add, and delete.
func byHand(t *testing.T, addr string) foreign {
	t.Helper()
	return foreign{
		prefix: "lock:",
		try: func(name string) bool {
			return command(t, addr, "add lock:"+name+" 0 60 6\r\nworker") == "STORED\r\n"
		},
		give: func(name string) { command(t, addr, "delete lock:"+name) },
	}
}

// toozProgram has locks of the Python library tooz, and does what it reads.
const toozProgram = `
import sys
from tooz import coordination
c = coordination.get_coordinator(sys.argv[1], b"member-1")
c.start()
locks = {}
print("ready", flush=True)
while True:
    words = sys.stdin.readline().split()
    if not words:
        break
    lock = locks.setdefault(words[1], c.get_lock(words[1].encode()))
    print(lock.acquire(blocking=False) if words[0] == "try" else lock.release(), flush=True)
`

func tooz(t *testing.T, addr string) foreign {
	t.Helper()
	p := exec.Command("/usr/bin/python3", "-W", "ignore", "-c", toozProgram, "memcached://"+addr+"?lock_timeout=60")
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	p.Stderr = &said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	line := func() string {
		s, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("tooz has ended: %v: %s", errors.Join(err, p.Wait()), said.String())
		}
		return strings.TrimSpace(s)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = p.Wait()
	})
	if got := line(); got != "ready" {
		t.Fatalf("tooz says %q", got)
	}
	ask := func(what string) string {
		if _, err := io.WriteString(in, what+"\n"); err != nil {
			t.Fatal(err)
		}
		return line()
	}
	return foreign{
		prefix: "__TOOZ_LOCK_",
		try:    func(name string) bool { return ask("try "+name) == "True" },
		give: func(name string) {
			if got := ask("release " + name); got != "True" {
				t.Errorf("tooz releases %s: %s", name, got)
			}
		},
	}
}

// Each keeps the other out, and gets in when the other has released.
func TestForeignExclusion(t *testing.T) {
	t.Parallel()
	for who, start := range map[string]func(t *testing.T, addr string) foreign{"by hand": byHand, "tooz": tooz} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			s := servertest.Memcached(t)
			theirs := start(t, s.Addr())
			a := storetest.Entered(t, storetest.Opened(t, s.URL()+"?layout=add&prefix="+theirs.prefix), time.Minute)

			ours := mutex("job")
			a.Asks(ours, true)
			if theirs.try("job") {
				t.Fatal("two hold: theirs beside ours")
			}
			a.Loses()
			a.Leaves(ours, true)
			if !theirs.try("job") {
				t.Fatal("they do not get what ours has released")
			}

			waits := mutex("job")
			if h := a.Asks(waits, false).Holder; h == nil || !h.Foreign {
				t.Errorf("in the way is %+v, want a foreign one", h)
			}
			h := a.Line("job")
			if !h.Foreign || h.Fence != 0 {
				t.Errorf("shown is %+v", h)
			}
			i := a.Driver.(driver.Inspector)
			if err := i.Break(t.Context(), "job", h.PublicID, 0, false); !errors.Is(err, driver.ErrOnlyNow) {
				t.Errorf("a mark for who reads none: %v", err)
			}
			if l, err := i.Lines(t.Context(), ""); err != nil || len(l) != 1 || l[0].Name != "job" {
				t.Errorf("lines %+v, %v", l, err)
			}
			a.Leaves(mutex("job"), false) // another claim's, which never was there
			theirs.give("job")
			a.Awaits(waits)
			if theirs.try("job") {
				t.Fatal("two hold: theirs beside ours, which had waited")
			}
			a.Leaves(waits, true)
		})
	}
}

// A foreign lock that ends by itself lets ours in, and what its holder deletes blindly is told by
// our next renewal.
func TestForeignBlindDelete(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, s.URL()+"?layout=add&prefix=lock:"), time.Minute)
	if got := command(t, s.Addr(), "add lock:job 0 2 6\r\nworker"); got != "STORED\r\n" {
		t.Fatal(got)
	}
	c := mutex("job")
	a.Asks(c, false)
	a.Awaits(c)
	command(t, s.Addr(), "delete lock:job")
	a.Loses(c)
	a.Leaves(c, false)
}

// What cannot be read, and a server that is gone, is told of beside all that can be listed; a key
// that none of us can name is nothing.
func TestTheRestIsListed(t *testing.T) {
	t.Parallel()
	s, gone := servertest.Memcached(t), servertest.Memcached(t)
	d := storetest.Opened(t, "memcached://"+s.Addr()+","+gone.Addr())
	a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	if got := command(t, s.Addr(), "ms aW50ZXJsb2NrOgEgYQ== 1 b\r\nx"); got != "HD\r\n" {
		t.Fatal(got)
	}
	var want, got []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("name-%02d", i))
		a.Asks(mutex(want[i]), true)
		beside(t, s.Addr()).says(memcache.Add(fmt.Sprintf("interlock:new-%02d", i), []byte(`il2{"id":"x"}`), 60))
	}
	if err := gone.Kill(); err != nil {
		t.Fatal(err)
	}
	lines, err := d.(driver.Inspector).Lines(t.Context(), "")
	for _, l := range lines {
		got = append(got, l.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed are %q", got)
	}
	for _, told := range []string{gone.Addr(), "interlock:new-00", "interlock:new-19"} {
		if err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("of %s nothing is told: %v", told, err)
		}
	}
}

// The looks show a holder whole, a mark is told to its owner, and what was shown before breaks
// nobody later.
func TestLooks(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t)
	a := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	b := storetest.Entered(t, storetest.Opened(t, s.URL()), time.Minute)
	i := b.Driver.(driver.Inspector)
	c := mutex("job")
	c.Passes = 3
	g := a.Asks(c, true)
	h := b.Line("job")
	if h.PublicID != driver.PublicID(c.ID) || h.Owner.Name != "it's us" || h.Note != "a note" || h.Passes != 3 || h.Fence != g.Fence || h.Foreign || h.Broken ||
		h.Until.Before(time.Now().Add(50*time.Second)) || strings.Contains(h.Note+h.PublicID, c.ID) {
		t.Errorf("shown is %+v", h)
	}
	if l, err := i.Lines(t.Context(), "jo"); err != nil || len(l) != 1 || l[0].Claims[0].PublicID != h.PublicID {
		t.Errorf("lines %+v, %v", l, err)
	}
	for _, wrong := range []struct {
		id    string
		fence uint64
	}{{"x", g.Fence}, {h.PublicID, g.Fence + 1}, {h.PublicID, 0}} {
		if err := i.Break(t.Context(), "job", wrong.id, wrong.fence, true); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%+v is broken: %v", wrong, err)
		}
	}
	if err := i.Break(t.Context(), "job", h.PublicID, g.Fence, false); err != nil {
		t.Fatal(err)
	}
	if h := b.Line("job"); !h.Broken || h.Fence != g.Fence {
		t.Errorf("marked, it is shown as %+v", h)
	}
	b.Asks(mutex("job"), false)
	if got := command(t, s.Addr(), "touch interlock:job 0"); got != "TOUCHED\r\n" {
		t.Fatal(got)
	}
	if err := i.Break(t.Context(), "job", h.PublicID, g.Fence, false); err != nil {
		t.Fatal(err)
	}
	if h := b.Line("job"); !h.Until.IsZero() {
		t.Errorf("an item without a time has one by its mark: %v", h.Until)
	}
	a.Loses(c)
	a.Loses(c) // until its Release
	if _, err := a.Acquire(t.Context(), c); !errors.Is(err, driver.ErrBroken) {
		t.Errorf("asked again, what is broken is answered %v", err)
	}
	a.Leaves(c, false)
	next := mutex("job")
	g = b.Asks(next, true)
	if err := i.Break(t.Context(), "job", driver.PublicID(next.ID), g.Fence, true); err != nil {
		t.Fatal(err)
	}
	a.Asks(mutex("job"), true)
	b.Loses(next)
	// What nobody of us wrote is another program's, however it begins.
	if r := beside(t, s.Addr()).says(memcache.Add("interlock:null", []byte("il1null"), 60)); r.Status != memcache.Done || !b.Line("null").Foreign {
		t.Errorf("%+v is shown as ours", r)
	}
	// A layout of tomorrow is nobody's to touch.
	if r := beside(t, s.Addr()).says(memcache.Add("interlock:new", []byte(`il2{"id":"x"}`), 60)); r.Status != memcache.Done {
		t.Fatalf("%+v", r)
	}
	if _, err := a.Acquire(t.Context(), mutex("new")); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer layout: %v", err)
	}
}
