package sessions

import "testing"

type fakeClaim struct{ Departure }

// A claim is known by its ID from the first call on. One that is released before anything is known
// of it is taken in all the same, so that a request that comes late finds it leaving; but not where
// the session is over.
func TestClaimsAreKnownByID(t *testing.T) {
	all := Claims[*fakeClaim]{}
	fresh := func() *fakeClaim { return &fakeClaim{} }
	a := all.Of("a", fresh)
	if all.Of("a", fresh) != a || a.Leaving {
		t.Error("a claim is another one when it is asked for again, or leaves")
	}
	if all.Leaving("a", false, fresh) != a || !a.Leaving {
		t.Error("a claim that is released is another one, or does not leave")
	}
	if b := all.Leaving("b", false, fresh); !b.Leaving || all.Of("b", fresh) != b {
		t.Error("a claim that nobody knew is not known once it is released")
	}
	if c := all.Leaving("c", true, fresh); !c.Leaving || len(all) != 2 {
		t.Error("a session that is over takes a claim in")
	}
	d := all.Of("d", fresh)
	if leaving := all.AllLeaving(); len(leaving) != 3 || !d.Leaving {
		t.Errorf("%d claims leave with their session, and one of 3 does: %v", len(leaving), d.Leaving)
	}
	if all.Forget("a", d) || !all.Forget("a", a) || all.Forget("a", a) || len(all) != 2 {
		t.Error("another claim is forgotten than the one that was meant")
	}
}
