package metrics_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/metrics"
)

// words returns the values of the constants of this type that the core has.
func words(t *testing.T, typ string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../tracer.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == typ {
			for _, v := range spec.Values {
				word, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, word)
			}
		}
		return true
	})
	return all
}

// What the core says of the end of a wait or a lease is counted as that.
func TestEveryWordOfTheCoreHasAPlace(t *testing.T) {
	var got []string
	for i, r := range metrics.Results {
		got = append(got, string(r))
		if metrics.OfResult(r) != i {
			t.Errorf("result %s has place %d, want %d", r, metrics.OfResult(r), i)
		}
	}
	if want := words(t, "Result"); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("results: %v, want those of the core: %v", got, want)
	}
	got = nil
	for i, r := range metrics.Reasons {
		got = append(got, string(r))
		if metrics.OfReason(r) != i {
			t.Errorf("reason %s has place %d, want %d", r, metrics.OfReason(r), i)
		}
	}
	if want := words(t, "Reason"); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("reasons: %v, want those of the core: %v", got, want)
	}
	for k := range driver.Permit + 1 {
		if metrics.OfKind(k) != int(k) {
			t.Errorf("kind %v has place %d, want %d", k, metrics.OfKind(k), k)
		}
	}
}

// A core that is newer than a module has words that the module does not know: they have a place, and no event is lost or fails.
func TestAnUnknownWordHasAPlace(t *testing.T) {
	if r := metrics.Results[metrics.OfResult("new")]; r != interlock.Failed {
		t.Errorf("an unknown result counts as %q, want %q", r, interlock.Failed)
	}
	if r := metrics.Reasons[metrics.OfReason("new")]; r != interlock.LostExpired {
		t.Errorf("an unknown reason counts as %q, want %q", r, interlock.LostExpired)
	}
	if k := driver.Kind(metrics.OfKind(driver.Permit + 1)); k != 0 {
		t.Errorf("an unknown kind counts as %v, want none", k)
	}
}

// series are made of names, and say of which.
func series() (*metrics.Series[string], map[string]int) {
	begun := map[string]int{}
	return metrics.NewSeries(func(name string) *string {
		begun[name]++
		return &name
	}), begun
}

// However many names there are, a hundred have series of their own, and those keep them.
func TestSeries_AreFew(t *testing.T) {
	for _, otherFirst := range []bool{true, false} {
		s, begun := series()
		if otherFirst { // a name that the program itself gives to others
			s.At(metrics.Other)
		}
		for round := range 2 {
			for i := range 300 {
				name := strconv.Itoa(i)
				want := name
				if i >= 100 {
					want = metrics.Other
				}
				if got := *s.At(name); got != want {
					t.Errorf("round %d: name %s is counted under %s, want %s", round, name, got, want)
				}
			}
		}
		if len(begun) != 101 || slices.Max(slices.Collect(maps.Values(begun))) != 1 {
			t.Errorf("begun: %d series, one of them %d times; want 101, once each", len(begun), slices.Max(slices.Collect(maps.Values(begun))))
		}
	}
}

// A name may be any bytes, but a label is text.
func TestSeries_HaveNamesThatAreText(t *testing.T) {
	s, _ := series()
	for range 2 {
		if got := *s.At("a\xff"); got != "a\uFFFD" {
			t.Errorf("the name is %q, want %q", got, "a\uFFFD")
		}
	}
}

// Goroutines meet at new names: all count under the same series.
func TestSeries_InACrowd(t *testing.T) {
	s, begun := series()
	const goroutines, names = 8, 150
	var got [goroutines][names]*string
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range names {
				got[g][i] = s.At(strconv.Itoa(i))
			}
		})
	}
	all.Wait()
	for g := range goroutines {
		if got[g] != got[0] {
			t.Errorf("goroutine %d has other series than the first", g)
		}
	}
	if len(begun) != 101 {
		t.Errorf("begun: %d series, want 101", len(begun))
	}
}
