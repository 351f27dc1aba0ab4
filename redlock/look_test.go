package redlock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
)

// look opens masters for a look.
func look(t *testing.T, url string) driver.Driver {
	t.Helper()
	d, err := driver.LookURL(t.Context(), url)
	if err != nil {
		t.Fatalf("open %s for a look: %v", url, err)
	}
	t.Cleanup(func() { _ = d.Close(t.Context()) })
	return d
}

// onVotes is what the doctor says of the votes.
func onVotes(t *testing.T, d driver.Driver) driver.Finding {
	t.Helper()
	found, err := d.(driver.Examiner).Examine(t.Context(), driver.Exam{}) //nolint:forcetypeassert // it is one
	i := slices.IndexFunc(found, func(f driver.Finding) bool { return f.Title == "votes" })
	if err != nil || i < 0 {
		t.Fatalf("the doctor found %v, %v, want what it says of the votes", found, err)
	}
	return found[i]
}

// nobody insists that a look shows no name, and opens no session.
func nobody(t *testing.T, d driver.Driver) {
	t.Helper()
	i := d.(driver.Inspector) //nolint:forcetypeassert // it is one
	if lines, err := i.Lines(t.Context(), ""); err != nil || len(lines) != 0 {
		t.Errorf("the names are %v, %v, want none", lines, err)
	}
	if line, err := i.Line(t.Context(), "job"); err != nil || len(line.Claims) != 0 {
		t.Errorf("at a name stand %v, %v, want nobody", line.Claims, err)
	}
	for line, err := range d.(driver.Watcher).Watch(t.Context(), "job") { //nolint:forcetypeassert // it is one
		if err != nil || len(line.Claims) != 0 {
			t.Errorf("a watch shows %v, %v, want nobody", line.Claims, err)
		}
		break
	}
	if _, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Second}); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("a session of what was opened for a look: %v, want %v", err, driver.ErrRefused)
	}
}

// records are what the masters have on record.
func records(t *testing.T, set []*servertest.Server) string {
	t.Helper()
	var all strings.Builder
	for _, s := range set {
		all.WriteString(s.MustDo(t, "HMGET", "il:{redlock}:member", "version", "members", "ttl", "id", "run", "until") + s.MustDo(t, "GET", "il:{redlock}:vote") + s.MustDo(t, "DBSIZE") + "\n")
	}
	return all.String()
}

// Whoever looks at masters that nobody has used yet makes no set of them: a max_ttl that is not
// that of the programs would have these refused.
func TestALookMakesNoSet(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	d := look(t, urlOf(addrs(set))+"?max_ttl=30s")
	if f := onVotes(t, d); f.Level != driver.LevelOK || !strings.Contains(f.Seen, "makes one of 3 masters with max_ttl 30s") {
		t.Errorf("of masters that nobody has used the doctor says %+v, want that a set would be made, with max_ttl 30s", f)
	}
	nobody(t, d)
	for i, s := range set {
		if n := s.MustDo(t, "DBSIZE"); n != "0" {
			t.Errorf("master %d has %s keys after a look, want none", i+1, n)
		}
	}
	// The programs' set is made all the same, and the look goes on in it.
	held := mutex("job", false)
	if _, err := session(t, open(t, urlOf(addrs(set))+"?max_ttl=30s"), 10*time.Second).Acquire(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	until(t, 30*time.Second, "seen that the set was made", func() bool { return strings.Contains(onVotes(t, d).Seen, "3 of 3 masters have a vote") })
	if lines, err := d.(driver.Inspector).Lines(t.Context(), ""); err != nil || len(lines) != 1 { //nolint:forcetypeassert // it is one
		t.Errorf("the names are %v, %v, want one", lines, err)
	}
}

// A max_ttl that is not the set's is told, and not written: as a refusal while the set is in use,
// and as a finding after that.
func TestALookTellsAnotherMaxTTL(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	if err := open(t, urlOf(addrs(set))).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := urlOf(addrs(set)) + "?max_ttl=30s"
	if d, err := driver.LookURL(t.Context(), url); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "MaxTTL 1m0s") {
		t.Errorf("a look with another max_ttl than that of the set in use: %v, %v, want it refused with both", d, err)
	}
	for _, s := range set {
		s.MustDo(t, "DEL", "il:{redlock}:used") // as three MaxTTL later
	}
	unused := records(t, set)
	d := look(t, url)
	if f := onVotes(t, d); f.Level != driver.LevelWarn || !strings.Contains(f.Seen, "MaxTTL 1m0s are on record") || !strings.Contains(f.Seen, "max_ttl 30s") {
		t.Errorf("of a set out of use the doctor says %+v, want a warning with both max_ttl", f)
	}
	nobody(t, d)
	if after := records(t, set); after != unused {
		t.Errorf("after a look the masters have on record\n%swant\n%s", after, unused)
	}
	if err := open(t, urlOf(addrs(set))).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := records(t, set); after != unused {
		t.Errorf("a program with the set's own max_ttl leaves\n%swant the set that was there\n%s", after, unused)
	}
}

// A look changes nothing of a master that has lost its vote: neither does its wait begin, nor does
// it get a new place.
func TestALookEnlistsNoMaster(t *testing.T) {
	t.Parallel()
	set := startMasters(t, 3)
	if err := open(t, urlOf(addrs(set))).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	set[1].MustDo(t, "HSET", "il:{redlock}:member", "run", "another start of it")
	set[2].MustDo(t, "FLUSHALL")
	before := records(t, set)
	d := look(t, urlOf(addrs(set)))
	f := onVotes(t, d)
	if f.Level != driver.LevelBad || !strings.Contains(f.Seen, "1 of 3 masters have a vote") || !strings.Contains(f.Seen, "it has restarted") {
		t.Errorf("of a master that has restarted and one that is blank the doctor says %+v, want that no majority votes, and why", f)
	}
	if after := records(t, set); after != before {
		t.Errorf("after a look the masters have on record\n%swant\n%s", after, before)
	}
}
