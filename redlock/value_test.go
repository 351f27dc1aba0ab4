package redlock

import (
	"fmt"
	"strings"
	"testing"
)

// What two claims write of themselves may be the same, who they are is not; and what is remembered has a bound.
func TestReadingsTellClaimsApart(t *testing.T) {
	said := readings{}
	value := func(id string, mark byte, name string) string {
		return fmt.Sprintf("%s%s%c%016d il:push:x {\"o\":{\"name\":%q},\"k\":\"m\"}", layout, strings.Repeat(id, idLen), mark, 1, name)
	}
	a, b := said.holder(value("a", '-', "web")), said.holder(value("b", '!', "web"))
	if a == b || a.PublicID == b.PublicID || a.Broken || !b.Broken || a.Owner.Name != "web" || b.Owner.Name != "web" {
		t.Errorf("%+v and %+v, want two holders of one owner, the second one broken", a, b)
	}
	for i := range 2*readingsMax + 1 {
		name := fmt.Sprint("worker ", i)
		if h := said.holder(value("c", '+', name)); h.Owner.Name != name {
			t.Fatalf("%+v, want the owner %q", h, name)
		}
	}
	if len(said) > readingsMax {
		t.Errorf("%d texts are remembered, want %d at most", len(said), readingsMax)
	}
}
