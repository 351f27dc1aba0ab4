package pglock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/pglock"
)

// Claims that give up together leave by one statement, which says of each whether it held until
// then, and lets in whoever is next.
func TestLeavesTogether(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	d, err := pglock.New(t.Context(), pool(t, s.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	var all []driver.Session
	var specs []driver.Spec
	var line []driver.Claim
	for i := range 6 {
		specs, line = append(specs, driver.Spec{ID: driver.NewID(), TTL: time.Hour}), append(line, mutex("crowd"))
		session, err := d.Open(t.Context(), specs[i])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, session)
		asks(t, session, line[i], i == 0)
	}
	leave := func(want string, which ...int) {
		t.Helper()
		var whose, ids string
		for _, i := range which {
			whose, ids = whose+specs[i].ID+",", ids+line[i].ID+","
		}
		none := driver.NewID() // of whom nothing is known
		got := ask[string](t, s, fmt.Sprintf("select array_to_string(interlock.leave('crowd', '{%s%s}', '{%[3]s%[2]s}', 5000), ' ')", whose, none, ids))
		if got != want {
			t.Errorf("%v leave: %q, want %q", which, got, want)
		}
	}
	leave("f f f", 1, 3)
	l, err := d.(driver.Inspector).Line(t.Context(), "crowd")
	if err != nil || len(l.Claims) != 4 {
		t.Fatalf("%d stand in line, %v; want 4", len(l.Claims), err)
	}
	if err := d.(driver.Inspector).Break(t.Context(), "crowd", l.Claims[0].PublicID, l.Claims[0].Fence, false); err != nil {
		t.Fatal(err)
	}
	leave("f f", 0) // it was broken
	if n := ask[int](t, s, "select coalesce(sum(cardinality(broken)), 0) from interlock.session"); n != 0 {
		t.Errorf("%d claims are remembered as broken after their release", n)
	}
	awaits(t, all[2], line[2])
	leave("f t f", 5, 2)
	awaits(t, all[4], line[4])
	leaves(t, all[4], line[4], true)
}
