package redislock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

// braced are names that a tag in braces has to be found for, and others that look like it.
var braced = []string{
	"a", "a}b", "{}", "{}x", "x{a}y{b}", "}", "{", "{{", "}}", "}{", "{a", "a{", "a}", "{a}", "{{a}}", "{}{a}", "a{}b{c}", "x{}}y", "{{}", "{}}",
	"a{b}c}d", "{ }", "il:", "il:x", "il:}x{", "il1:shared", "xil:{a}:line:b", "}:fence:", "a}:fence:b", "{a}:fence:}:fence:b", "*", "[a]?", `\`, "ü{ö}ä", "日本",
	strings.Repeat("{", 1024), strings.Repeat("}", 1024), strings.Repeat("{}", 512),
}

// legal reports whether the core lets a name through.
func legal(name string) bool {
	return name != "" && len(name) <= 1024 && utf8.ValidString(name) && strings.IndexFunc(name, unicode.IsControl) < 0
}

// keep checks the keys of a legal name: one slot for all, by the server's own reckoning, and the
// name found again.
func keep(t *testing.T, s *servertest.Server, name string) {
	t.Helper()
	if refused := redisstore.CheckName("redislock", name); (refused != nil) != strings.HasPrefix(name, "il:{") || refused != nil && !errors.Is(refused, driver.ErrRefused) {
		t.Errorf("%q: %v, want names with il:{ in front refused and no others", name, refused)
	}
	k := keysOf(name)
	if k.name != name {
		t.Errorf("%q is kept at %q", name, k.name)
	}
	if got := counterOf(k.counter); got != name {
		t.Errorf("the counter %q is taken for that of %q, want %q", k.counter, got, name)
	}
	if got := lineOf(k.line); got != name {
		t.Errorf("the line %q is taken for that of %q, want %q", k.line, got, name)
	}
	if counterOf(k.line) != "" || lineOf(k.counter) != "" || lineOf(k.claims) != "" || counterOf(k.claims) != "" {
		t.Errorf("keys of %q are taken for others", name)
	}
	want := ""
	for _, key := range k.all() {
		slot := s.MustDo(t, "CLUSTER", "KEYSLOT", key)
		if got := strconv.Itoa(redisconn.Slot(key)); got != slot {
			t.Errorf("slot of %q: %s here, %s at the server", key, got, slot)
		}
		if want == "" {
			want = slot
		}
		if slot != want {
			t.Errorf("%q is in slot %s, and %q of its keys in %s", name, want, key, slot)
		}
		if key != name && !strings.HasPrefix(key, "il:{") {
			t.Errorf("%q has a key %q, which a lock may be named", name, key)
		}
	}
}

// R8: on a cluster all keys of a name must lie in one slot, and the slot of a key depends on the
// braces in it.
func TestR08_AllKeysOfANameLieInItsSlot(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, "--cluster-enabled", "yes")
	names := slices.Clone(braced)
	rng := rand.New(rand.NewPCG(8, 8))
	for range 300 {
		b := make([]byte, 1+rng.IntN(12))
		for i := range b {
			b[i] = "{}{}ab:il"[rng.IntN(9)]
		}
		names = append(names, string(b))
	}
	owners := map[string]string{}
	for _, name := range names {
		keep(t, s, name)
		for _, key := range keysOf(name).all() {
			if other, taken := owners[key]; taken && other != name && !strings.HasPrefix(name, "il:{") && !strings.HasPrefix(other, "il:{") {
				t.Errorf("%q and %q share the key %q", name, other, key)
			}
			owners[key] = name
		}
	}
}

func FuzzR08Names(f *testing.F) {
	for _, name := range braced {
		f.Add(name)
	}
	s := servertest.Redis(f, "--cluster-enabled", "yes")
	f.Fuzz(func(t *testing.T, name string) {
		if legal(name) {
			keep(t, s, name)
		}
	})
}

// R8: every such name is locked, waited for, handed on, shared, counted and listed on a server that
// refuses keys of different slots.
func TestR08_EveryNameIsALock(t *testing.T) {
	t.Parallel()
	s := servertest.RedisCluster(t, 1, 0)
	d, err := driver.OpenURL(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	a, err := interlock.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := interlock.Open(t.Context(), s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var held []*interlock.Lease
	for _, name := range braced {
		one, err := a.Mutex(name).Lock(t.Context())
		if err != nil {
			t.Fatalf("lock %q: %v", name, err)
		}
		if _, err := b.Mutex(name).TryLock(t.Context()); !errors.Is(err, interlock.ErrHeld) {
			t.Errorf("try %q: %v", name, err)
		}
		next := make(chan *interlock.Lease, 1)
		go func() {
			l, err := b.RWMutex(name).Lock(t.Context())
			if err != nil {
				t.Errorf("wait for %q: %v", name, err)
			}
			next <- l
		}()
		k := keysOf(name)
		for n := ""; n != "1"; {
			if n, err = s.Nodes[0].Do("LLEN", k.line); err != nil {
				t.Fatal(err)
			}
		}
		if err := one.Release(); err != nil {
			t.Errorf("release %q: %v", name, err)
		}
		two := <-next
		if two == nil {
			t.FailNow()
		}
		if two.Fence() <= one.Fence() {
			t.Errorf("%q: token %d after %d", name, two.Fence(), one.Fence())
		}
		if err := two.Release(); err != nil {
			t.Errorf("release %q: %v", name, err)
		}
		permit, err := a.Semaphore(name, 2).Acquire(t.Context(), 1)
		if err != nil {
			t.Fatalf("permit of %q: %v", name, err)
		}
		held = append(held, permit)
	}
	lines, err := d.(driver.Inspector).Lines(t.Context(), "")
	if err != nil {
		t.Error(err)
	}
	var listed []string
	for _, l := range lines {
		listed = append(listed, l.Name)
	}
	want := slices.Sorted(slices.Values(braced))
	if !slices.Equal(listed, want) {
		t.Errorf("listed are %q\nwant %q", listed, want)
	}
	for _, l := range held {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"il:{a}:line:b", "il:{", "il:{}"} {
		if _, err := a.Mutex(name).Lock(t.Context()); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "own keys") {
			t.Errorf("lock %q: %v, want it refused with the reason", name, err)
		}
	}
}
