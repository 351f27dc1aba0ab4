package mysqllock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
	"github.com/interlock-go/interlock/mysqllock"
)

// Claims that give up together leave by one statement, which says of each whether it held until
// then, lets in whoever is next, and has who stood behind them look by whom he is held up now.
func TestLeavesTogether(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	patient(t, s)
	d := dials(t, s, nil)
	var all []driver.Session
	var crowd []rowline.Member
	var line []driver.Claim
	for i := range 6 {
		spec := driver.Spec{ID: driver.NewID(), TTL: time.Hour}
		session, err := d.Open(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		all, line = append(all, session), append(line, mutex("crowd"))
		crowd = append(crowd, rowline.Member{Session: spec.ID, ID: line[i].ID})
		asks(t, session, line[i], i == 0)
	}
	other, last := on(t, dials(t, s, nil)), mutex("crowd")
	asks(t, other, last, false)
	becomes(t, s, waiting, 6)
	leave := func(want string, which ...int) {
		t.Helper()
		leavers := []rowline.Member{{Session: driver.NewID(), ID: driver.NewID()}} // of whom nothing is known
		for _, i := range which {
			leavers = append(leavers, crowd[i])
		}
		was, err := mysqllock.LeaveTogether(t.Context(), d, "crowd", leavers...)
		if got := fmt.Sprint(was); got != want || err != nil {
			t.Errorf("%v leave: %s, %v; want %s", which, got, err, want)
		}
	}
	leave("[false false false]", 1, 3)
	leave("[false true]", 0)
	awaits(t, all[2], line[2]) // it stood behind one that has left
	l, err := d.(driver.Inspector).Line(t.Context(), "crowd")
	if err != nil || len(l.Claims) != 4 {
		t.Fatalf("%d stand in line, %v; want 4", len(l.Claims), err)
	}
	if err := d.(driver.Inspector).Break(t.Context(), "crowd", l.Claims[0].PublicID, l.Claims[0].Fence, false); err != nil {
		t.Fatal(err)
	}
	leave("[false false]", 2) // it was broken
	if n := ask[int](t, s, "select count(*) from interlock_session where broken <> ''"); n != 0 {
		t.Errorf("%d sessions remember claims as broken after their release", n)
	}
	awaits(t, all[4], line[4])
	leave("[false false true]", 5, 4)
	awaits(t, other, last)
	leaves(t, other, last, true)
}

// A hundred who waited give up at once: the line is not looked at for each of them.
func TestACrowdGivesUpByFewRequests(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	h := newHarness(s, s.URL())
	d := h.Driver(t)
	a, b, mine := on(t, d), user(t, s.URL()), mutex("few")
	asks(t, b, mine, true)
	line := make([]driver.Claim, 100)
	for i := range line {
		line[i] = mutex("few")
		asks(t, a, line[i], false)
	}
	before := h.Calls(d)
	var all sync.WaitGroup
	for _, c := range line {
		all.Go(func() { leaves(t, a, c, false) })
	}
	all.Wait()
	if n := h.Calls(d) - before; n > len(line)/2 {
		t.Errorf("%d claims that gave up at once left by %d requests, want a few", len(line), n)
	}
	leaves(t, b, mine, true)
	if n := ask[int](t, s, "select count(*) from interlock_lock where line <> ''"); n != 0 {
		t.Error("somebody stands in line when all have left")
	}
}
