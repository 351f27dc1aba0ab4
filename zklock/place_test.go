package zklock

import (
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// Every place is ahead of another one or behind it, whatever the children are called and in which
// order they are told.
func TestZ10_TheLineHasAnOrder(t *testing.T) {
	want := []string{"k__lock__-2147483648", "_c_0-lock--1500000000", "_c_2-lock-0000000000", "_c_1-lock-1500000000", "_c_4-lock-2147483646", "_c_5-lock-2147483647", "_c_6-lock-2147483647"}
	children := append(slices.Clone(want), "junk")
	for range 100 {
		rand.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
		var order []string
		for _, p := range placesOf("/x", children) {
			order = append(order, path.Base(p.nodes[0]))
		}
		if !slices.Equal(order, want) {
			t.Fatalf("the line of %q is %q, want %q", children, order, want)
		}
	}
}

func TestNumbersOfChildren(t *testing.T) {
	for child, number := range map[string]int32{
		"_c_x-lock-0000000000": 0, "_c_x-lock-0000000012": 12, "x-5-0000000012": 12, "lock-0000000001": 1, "0000000003": 3, "_c_x-lock--000000001": -1, "_c_x-lock--2147483648": math.MinInt32,
	} {
		if n, ok := numberOf(child); !ok || n != number {
			t.Errorf("%s has number %d, %v; want %d", child, n, ok, number)
		}
	}
	for _, child := range []string{"", "lock-", "locks", "lock-000000000", "lock-9999999999", "lock-+000000001", "lock-00000000x0"} {
		if n, ok := numberOf(child); ok {
			t.Errorf("%q stands in line as %d", child, n)
		}
	}
}

// Whatever stands among the leases is in somebody's way at most, and one claim's leases are one
// place.
func TestJunkAmongLeases(t *testing.T) {
	const ours = "_c_01234567-89ab-cdef-0123-456789abcdef-"
	leases := []string{
		ours, ours + "2-3-", ours + "2-3-x", ours + "2-3-5.1-leas", ours + "9-3-5.1-lease-0000000000", "lease-", "junk", "-lease-0000000001",
		ours + "2-3-5.1-lease-0000000002", ours + "2-3-5.1-lease-0000000001", ours + "2-3-4.1-lease-0000000003", ours + "2-3-4.1-lease-0000000004",
	}
	held := 0
	for _, p := range semaphoreOf("/x", []string{"junk", ours + "1-3-lock-0000000000"}, leases, 5) {
		if len(p.nodes) == 2 && p.weight == 2 {
			held++
		} else if len(p.nodes) != 1 {
			t.Errorf("%q are one place", p.nodes)
		}
	}
	if held != 2 {
		t.Errorf("%d claims have two leases, want 2", held)
	}
}

// The largest token that can be drawn is one that may be used.
func TestTokensStayWithinRange(t *testing.T) {
	if top := tokenOf(maxZxid) + driver.Stride - 1; top > driver.MaxFence || tokenOf(1) != driver.Stride {
		t.Errorf("tokens from %d to %d", tokenOf(1), top)
	}
}

// No node of a lock lies below that of another one, and each name is read again as it was.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"orders", "a/b", ".", "..", "%", "a%2Fb", "é", "🔒", "\ufffd", "\xff", "\x00", "zookeeper", " ", "a\u0301", "\ue000"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, root := range []bool{true, false} {
			node := nodeOf(name, root)
			if back, ok := nameOf(node, root); name != "" && (!ok || back != name) {
				t.Errorf("%q is written as %q and read as %q, %v", name, node, back, ok)
			}
			if strings.ContainsAny(node, "/\x00") || node == "." || node == ".." || root && node == "zookeeper" {
				t.Errorf("%q is written as %q", name, node)
			}
		}
	})
}

func TestPlainNamesStay(t *testing.T) {
	for _, name := range []string{"orders", "nightly job", "Zähler-7", "日本", "a.b", "..."} {
		if node := nodeOf(name, true); node != name {
			t.Errorf("%q is written as %q", name, node)
		}
	}
}
