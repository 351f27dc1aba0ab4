package drivertest

import (
	"errors"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

var namesLaw = Law{
	Name: "Law09_Names",
	Says: "Names never cross-talk: two names are two locks however alike they look, and one name is one lock for everybody. " +
		"Every name of up to 1,024 bytes of UTF-8 without control characters is kept; what cannot be kept is refused, never bent.",
	try: tryNames,
}

// oddEndings follow a common beginning. What some layer folds, splits, cleans, escapes, matches or
// cuts stands beside what it would become.
var oddEndings = []string{
	"", "a", "A", "aa", " a", "a ", "a  b", "a b", "ab",
	"a/b", "a//b", "a/b/", "/a/b", "a/ b", "a/./b", "a/../b", "a/..", "b", "..", ".", "a.b", "a.", "a\\b",
	"{a}", "{b}", "{a}b", "{}", "{", "}", "a{b", "[a]", "a*", "a?", "%", "_", "a%", "a_", "%61", "%2F", "%25", "a+b",
	"a:b", "a::b", ":a", "a|b", "a,b", "a;b", "a=b", "a#b", "a&b", "'a'", "\"a\"", "`a`", "$(a)", "$a", "--a", "~", "!", "@",
	"é", "e\u0301", "É", "e", "ﬁ", "fi", "ß", "ss", "SS", "ı", "i", "I", "İ", "К", "K", "\u212a",
	"a\u00a0b", "a\u200bb", "a\u200db", "\ufeffa", "a\u2028b", "日本", "🔒", "🔒\ufe0f", "🔑",
	"Aa", "BB", "plumless", "buckeroo", // equal by the hash of Java and by CRC-32, behind whatever stands before them
	"-lock", ":lock", ".lock", ".tmp", "-1", "0", "00", "1", "01", "1e0", "null", "nil",
}

// longEndings differ at one end only, around lengths at which stores cut.
func longEndings(beginning int) []string {
	var e []string
	for _, total := range []int{128, 250, 255, 256, 512, 1024} {
		if n := total - beginning; n > 1 {
			x := strings.Repeat("x", n-1)
			e = append(e, x+"1", x+"2", "1"+x)
		}
	}
	return append(e, strings.Repeat("é", (1024-beginning)/2), strings.Repeat("日", (1024-beginning)/3))
}

func tryNames(w *world) {
	for _, k := range w.kinds() { // apart, so that what is mixed up is of one kind
		tryNamesOf(w, k)
	}
}

func tryNamesOf(w *world, k kind) {
	beginning := w.name(k.String())
	seen := map[string]bool{}
	var names []string
	for _, e := range append(longEndings(len(beginning)), oddEndings...) {
		if n := beginning + e; !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	a, b := w.actor("A"), w.actor("B")
	mine := map[string]driver.Claim{}
	for i, n := range names {
		c := k.own(n)
		g, err := a.tryAcquire(w.ctx, c)
		if err != nil {
			w.fail("the name %s of %d bytes was answered with %v", w.trace.name(n), len(n), err)
		}
		if !g.Held {
			w.fail("%s is not free for a %s although nobody has used it: it is mixed up with one of the %d names held before it", w.trace.name(n), k, i)
		}
		mine[n] = c
	}
	for _, n := range names { // one name is one lock
		b.denied(k.rival(n))
	}
	tryKeys(w, b.p.d, names)
	tryLines(w, b.p.d, k, beginning, names)
	for i, n := range names { // and only that one
		if i%2 == 1 {
			a.letGo(mine[n])
		}
	}
	for i, n := range names {
		if i%2 == 0 {
			b.denied(k.rival(n))
			continue
		}
		b.hold(k.rival(n))
	}
	tryUnkeepable(w, k, a, b, beginning)
}

// tryKeys asks a Keyer: two names have two keys, one name always the same.
func tryKeys(w *world, d driver.Driver, names []string) {
	k, ok := d.(driver.Keyer)
	if !ok {
		return
	}
	of := map[string]string{}
	for _, n := range names {
		key := k.Key(n)
		if other, ok := of[key]; ok {
			w.fail("Key is %q for both %q and %q", key, n, other)
		}
		of[key] = n
		if again := k.Key(n); again != key {
			w.fail("Key(%q) is %q and then %q", n, key, again)
		}
	}
}

// tryLines asks an Inspector: it knows the names as they were given. In the prefix of Lines, too,
// no character means another, which has nothing to do with the kind.
func tryLines(w *world, d driver.Driver, k kind, beginning string, names []string) {
	look, ok := d.(driver.Inspector)
	if !ok {
		return
	}
	tryPrefix(w, look, beginning, names)
	if k.Kind != driver.Mutex {
		return
	}
	for _, e := range []string{"A", "a_", "a%", "a?", "a*", "[a]", "a\\"} {
		tryPrefix(w, look, beginning+e, names)
	}
}

func tryPrefix(w *world, look driver.Inspector, prefix string, names []string) {
	lines, err := lookAtAll(w, look, prefix)
	if errors.Is(err, errors.ErrUnsupported) {
		w.without("what Lines lists under a prefix", err.Error())
		return
	}
	if err != nil {
		w.fail("Lines(%s): %v", w.trace.name(prefix), err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, l.Name)
	}
	var want []string
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			want = append(want, n)
		}
	}
	if !slices.IsSorted(got) {
		w.fail("Lines yields names out of order: %q", got)
	}
	for _, n := range want {
		if !slices.Contains(got, n) {
			w.fail("Lines(%s) does not have %q, which is held", w.trace.name(prefix), n)
		}
	}
	for _, n := range got {
		if !slices.Contains(want, n) {
			if slices.Contains(names, n) {
				w.fail("Lines(%s) has %q, which does not begin with that", w.trace.name(prefix), n)
			}
			w.fail("Lines(%s) has %q, which nobody holds", w.trace.name(prefix), n)
		}
	}
}

// Names that the core never sends are kept exactly or refused.
func tryUnkeepable(w *world, k kind, a, b *actor, beginning string) {
	for _, pair := range [][2]string{
		{"u\x00v", "u"},
		{"u\nv", "u v"},
		{"u\n", "u"},
		{"u\r\nv", "u\nw"},
		{"u\xffv", "u\ufffdv"},
		{"u\x7fv", "uv"},
		{strings.Repeat("y", 1500), strings.Repeat("y", 1024-len(beginning))},
		{strings.Repeat("z", 5000) + "1", strings.Repeat("z", 5000) + "2"},
	} {
		odd, plain := k.own(beginning+pair[0]), k.rival(beginning+pair[1])
		g, err := a.tryAcquire(w.ctx, odd)
		if errors.Is(err, driver.ErrRefused) {
			continue
		}
		if err != nil || !g.Held {
			w.fail("the name %q was answered with %s: want it held, or an error that matches ErrRefused", pair[0], w.trace.answer(g, err))
		}
		b.denied(k.rival(odd.Name))
		if g, err := b.tryAcquire(w.ctx, plain); !g.Held && !errors.Is(err, driver.ErrRefused) {
			w.fail("%q is mixed up with %q: it was answered with %s", pair[1], pair[0], w.trace.answer(g, err))
		}
		b.release(plain)
		a.letGo(odd)
	}
}
