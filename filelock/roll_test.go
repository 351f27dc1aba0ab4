//go:build linux || darwin

package filelock

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// listed lists the lines of d's store and returns their names, how many claims they have, and how many records were read.
func listed(t testing.TB, d *Driver) (names string, reads int) {
	t.Helper()
	// Who has left until now is not taken for one who leaves while the rolls are read: see machine.ClockClose.
	for begin := d.st.BootClock(); d.st.BootClock() <= begin+machine.ClockClose; {
	}
	before := d.Stats().RecordReads
	lines, err := d.Lines(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range lines {
		all = append(all, fmt.Sprintf("%s %d", l.Name, len(l.Claims)))
	}
	return strings.Join(all, ", "), int(d.Stats().RecordReads - before)
}

func lists(t testing.TB, d *Driver, wants string, reads int) {
	t.Helper()
	if names, n := listed(t, d); names != wants || n != reads {
		t.Errorf("lists %q by %d reads of records, want %q by %d", names, n, wants, reads)
	}
}

// use locks names and releases them.
func use(t testing.TB, s driver.Session, prefix string, n int) {
	t.Helper()
	for i := range n {
		c := mutexOf(fmt.Sprint(prefix, i))
		acquire(t, s, c)
		release(t, s, c)
	}
}

// A list reads the records of lines that stand, however many names were locked before.
func TestLines_CostsByWhatStands(t *testing.T) {
	dir := storeIn(t)
	d, s := openAt(t, dir, long)
	_, s2 := openAt(t, dir, long)
	viewer, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer viewer.Close(t.Context())
	lists(t, viewer, "", 0)
	held, waits := mutexOf("held"), mutexOf("held")
	acquire(t, s, held)
	acquire(t, s2, waits)
	acquire(t, s2, mutexOf("too"))
	use(t, s, "old/", 400)
	lists(t, viewer, "held 2, too 1", 2)
	lists(t, d, "held 2, too 1", 2)
	release(t, s, held)
	lists(t, viewer, "held 1, too 1", 2)
	if err := s2.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lists(t, viewer, "", 0)
	// More at once than a chunk of the roll has room for.
	var many []driver.Claim
	for i := range 2 * layout.ChunkSlots {
		c := mutexOf(fmt.Sprintf("many/%03d", i))
		acquire(t, s, c)
		many = append(many, c)
	}
	if names, n := listed(t, viewer); n != len(many) || strings.Count(names, "many/") != len(many) {
		t.Errorf("lists %q by %d reads, want %d lines", names, n, len(many))
	}
	for _, c := range many[1:] {
		release(t, s, c)
	}
	lists(t, viewer, "many/000 1", 1)
	d.die()
	if names, _ := listed(t, viewer); names != "" {
		t.Errorf("lists %q of a process that has died", names)
	}
	viewer.sweep(t.Context(), 0)
	lists(t, viewer, "", 0)
}

// Where a session's roll cannot be believed the records are read, all of them.
func TestLines_WithoutARoll(t *testing.T) {
	roll := func(d *Driver, s driver.Session) string { return d.st.RollPath(s.(*session).key) }
	write := func(at int64, b string) func(testing.TB, *Driver, driver.Session) {
		return func(t testing.TB, d *Driver, s driver.Session) {
			t.Helper()
			f, err := os.OpenFile(roll(d, s), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte(b), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, spoil := range map[string]func(testing.TB, *Driver, driver.Session){
		"of an older version": func(t testing.TB, d *Driver, s driver.Session) {
			t.Helper()
			if err := os.Remove(roll(d, s)); err != nil {
				t.Fatal(err)
			}
		},
		"cut to nothing": func(t testing.TB, d *Driver, s driver.Session) {
			t.Helper()
			if err := os.Truncate(roll(d, s), 0); err != nil {
				t.Fatal(err)
			}
		},
		"longer": func(t testing.TB, d *Driver, s driver.Session) {
			t.Helper()
			if err := os.Truncate(roll(d, s), 2*layout.ChunkSize); err != nil {
				t.Fatal(err)
			}
		},
		"another file": write(16, "somebody"),
		"full disk": func(t testing.TB, _ *Driver, s driver.Session) {
			t.Helper()
			mine := s.(*session).holdings
			mine.mu.Lock()
			mine.roll.File.Close() // nothing can be written there
			mine.mu.Unlock()
			for i := range layout.ChunkSlots {
				acquire(t, s, mutexOf(fmt.Sprint("more/", i)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeIn(t)
			d, s := openAt(t, dir, long)
			use(t, s, "old/", 3)
			acquire(t, s, mutexOf("before"))
			viewer, _ := openAt(t, dir, long)
			spoil(t, d, s)
			after := mutexOf("after")
			if g := acquire(t, s, after); !g.Held {
				t.Fatal("not held")
			}
			names, n := listed(t, viewer)
			if !strings.HasPrefix(names, "after 1, before 1") || n < 5 {
				t.Errorf("lists %q by %d reads; want all that stands, of all records", names, n)
			}
			release(t, s, after)
			d.die()
			if names, _ := listed(t, viewer); names != "" {
				t.Errorf("lists %q of a process that has died", names)
			}
			viewer.sweep(t.Context(), 0)
			lists(t, viewer, "", 0)
		})
	}
}

// A line that is handed over while the rolls are read one after the other is seen: the one who left is still named, or it
// is said that not all are.
func TestRoll_NamesWhoHasJustLeft(t *testing.T) {
	dir := storeIn(t)
	d, s1 := openAt(t, dir, long)
	_, s2 := openAt(t, dir, long)
	c := mutexOf("n")
	acquire(t, s2, c)
	since, seen := uint64(d.st.BootClock()), map[string]bool{}
	read := func(s driver.Session) bool {
		all, err := d.st.ReadRoll(s.(*session).key, since, seen)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if !read(s1) || len(seen) != 0 {
		t.Errorf("the roll of one who stands nowhere names %v", seen)
	}
	acquire(t, s1, mutexOf("n"))
	release(t, s2, c)
	if !read(s2) || !seen[layout.RecordName("n", layout.HashOf("n"))] {
		t.Errorf("the roll of one who has just left names %v, and not the line", seen)
	}
	use(t, s2, "more/", layout.ChunkSlots)
	if read(s2) {
		t.Error("what has just left was written over, and the roll says that it names all")
	}
}

// The same while it happens.
func TestLines_OfALineThatIsHandedOver(t *testing.T) {
	dir := storeIn(t)
	viewer, _ := openAt(t, dir, long)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var once sync.Once
	ready := make(chan struct{})
	for range 2 {
		_, s := openAt(t, dir, long)
		all.Go(func() {
			c := mutexOf("n")
			if _, err := hold(ctx, s, c); err != nil {
				if ctx.Err() == nil { // it came in time
					t.Error(err)
				}
				return
			}
			once.Do(func() { close(ready) })
			for ctx.Err() == nil { // the next one stands in line before this one leaves
				next := mutexOf("n")
				if _, _, err := s.(driver.Requeuer).Requeue(ctx, c, next); err != nil {
					return
				}
				c = next
				if _, err := s.Wait(ctx, c); err != nil {
					return
				}
			}
		})
	}
	<-ready
	for range 300 {
		if lines, err := viewer.Lines(t.Context(), ""); err != nil || len(lines) != 1 {
			t.Errorf("lists %v, %v, and not the line", lines, err)
			break
		}
	}
	stop()
	all.Wait()
}
