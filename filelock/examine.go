//go:build linux || darwin

package filelock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

const (
	leastSpace = 16 << 20 // bytes: a store of many thousand names
	leastFiles = 1000     // inodes
	leastOpen  = 64       // descriptors beside those in use: a session has a few, and records of names that are held one each
	flushes    = 5        // writes to the disk that are measured
)

// Examine implements driver.Examiner.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := []driver.Finding{d.examineRights(), d.examineParents(), d.examineFS(), d.examineRoom(), examineOpen(), d.examineLeft()}
	if e.Write {
		found = append(found, d.examineFlock(), d.examineDisk(e))
	}
	return found, nil
}

// examineRights looks at who may write to the store, as when it was opened.
func (d *Driver) examineRights() driver.Finding {
	f := driver.Finding{Title: "rights", Seen: "only this user may write to it"}
	if d.st.Shared() {
		f.Seen = "this user's group may write to it, and nobody else"
	}
	for _, dir := range []string{d.st.Dir, d.st.Locks, d.st.Sessions} {
		if err := d.st.CheckRights(dir); err != nil {
			f.Level, f.Seen = driver.LevelBad, err.Error()
			f.Why = "whoever may write to it can take every lock; a program that opens the store refuses it"
			f.Mend = "chmod 700 " + dir + ", or 2770 for a group that shares it"
			return f
		}
	}
	return f
}

// examineParents looks at who may put another store in this one's place: whoever may rename a folder above it.
func (d *Driver) examineParents() driver.Finding {
	f := driver.Finding{Code: "S21", Title: "folders above", Seen: "nobody may put another store in its place"}
	path, err := filepath.EvalSymlinks(d.st.Dir)
	if err != nil {
		f.Level, f.Seen = driver.LevelSkip, err.Error()
		return f
	}
	store, err := os.Stat(path)
	if err != nil {
		f.Level, f.Seen = driver.LevelSkip, err.Error()
		return f
	}
	owner, group := ownersOf(store)
	owners, groups := []int{0, os.Geteuid(), owner}, []int{0, os.Getegid(), group} // who may break its locks anyway
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			f.Level, f.Seen = driver.LevelSkip, err.Error()
			return f
		}
		owner, group := ownersOf(info)
		switch {
		case !slices.Contains(owners, owner): // who may rename what is in it, sticky or not
			f.Level, f.Seen = driver.LevelBad, fmt.Sprintf("%s belongs to user %d", dir, owner)
			f.Why = "he may put another store in this one's place: one holds in the old one, and another in the new"
			f.Mend = "chown root " + dir + ", or a store elsewhere"
			return f
		case info.Mode().Perm()&0o020 != 0 && info.Mode()&os.ModeSticky == 0 && !slices.Contains(groups, group):
			f.Level, f.Seen = driver.LevelWarn, fmt.Sprintf("group %d may write to %s (mode %v)", group, dir, info.Mode())
			f.Why = "any of its members may put another store in this one's place: one holds in the old one, and another in the new"
			f.Mend = "chmod g-w " + dir + ", or a store elsewhere"
			return f
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
			f.Level, f.Seen = driver.LevelBad, fmt.Sprintf("everybody may write to %s (mode %v)", dir, info.Mode())
			f.Why = "whoever renames what is in it puts another store in this one's place: one holds in the old one, and another in the new"
			f.Mend = "chmod o-w " + dir + ", or a store elsewhere"
			return f
		}
		if dir == filepath.Dir(dir) {
			return f
		}
	}
}

// ownersOf are the user and the group of a file.
func ownersOf(info os.FileInfo) (user, group int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return 0, 0
}

// examineFS looks at what the store is on.
func (d *Driver) examineFS() driver.Finding {
	f := driver.Finding{Code: "S19", Title: "file system", Seen: "one of this machine"}
	name, err := d.st.RemoteFS(int(d.st.SessionsDir.Fd()))
	switch {
	case err != nil:
		f.Level, f.Seen = driver.LevelSkip, fmt.Sprintf("it does not tell: %v", err)
	case name != "":
		f.Level, f.Seen = driver.LevelBad, "it is "+name
		f.Why = "locks and sockets do not reach other machines there, or do not work: two hold"
		f.Mend = "a directory on a disk of this machine; for several machines a server, as redis:// or postgres://"
	case d.st.InMemory(d.st.Dir):
		f.Code, f.Level, f.Seen = "S22", driver.LevelWarn, "it is memory (tmpfs)"
		f.Why = "a reboot forgets which tokens were drawn: the next ones rest on the clock, and one that is behind draws smaller ones"
		f.Mend = "a directory on a disk, where tokens are checked; otherwise it may stay"
	}
	return f
}

// examineRoom looks at what is left for records and sessions.
func (d *Driver) examineRoom() driver.Finding {
	f := driver.Finding{Code: "O7", Title: "room"}
	r, err := d.st.Room(d.st.Dir)
	if err != nil {
		f.Level, f.Seen = driver.LevelSkip, err.Error()
		return f
	}
	f.Seen = fmt.Sprintf("%d MiB", r.Bytes>>20)
	if r.Counts {
		f.Seen += fmt.Sprintf(" and %d files", r.Files)
	}
	f.Seen += " are left"
	const mend = "make room: df -h and df -i say where there is none"
	switch {
	case r.Bytes == 0, r.Counts && r.Files == 0:
		f.Level, f.Why, f.Mend = driver.LevelBad, "no lock can be had whose name has no record, and no session opened", mend
	case r.Bytes < leastSpace, r.Counts && r.Files < leastFiles:
		f.Level, f.Why, f.Mend = driver.LevelWarn, "when it is full no session can be opened, and no new name locked", mend
	}
	return f
}

// examineOpen looks at how many descriptors this process has left. It is the doctor's own; a service asks for its own by Client.Doctor.
func examineOpen() driver.Finding {
	f := driver.Finding{Code: "O5", Title: "descriptors"}
	var limit syscall.Rlimit
	open, err := os.ReadDir("/dev/fd")
	if err == nil {
		err = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	if err != nil {
		f.Level, f.Seen = driver.LevelSkip, err.Error()
		return f
	}
	f.Seen = fmt.Sprintf("this process has %d files open, and may have %d", len(open), limit.Cur)
	if uint64(len(open))+leastOpen > limit.Cur {
		f.Level = driver.LevelWarn
		f.Why = "each session has a few, and each name that is held one: a lock cannot be had, or renewed with its next name"
		f.Mend = "a higher limit: ulimit -n 1024, LimitNOFILE= in a unit"
	}
	return f
}

// examineLeft counts what interlock prune would remove: records that nobody has written to for a week. The sweep takes them long before, where
// some process of the store runs that long.
func (d *Driver) examineLeft() driver.Finding {
	f := driver.Finding{Title: "leftovers"}
	const idle, many = 7 * 24 * time.Hour, 10_000
	entries, err := os.ReadDir(d.st.Locks)
	if err != nil {
		f.Level, f.Seen = driver.LevelSkip, err.Error()
		return f
	}
	stale := 0
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && d.st.WallClock().Sub(info.ModTime()) >= idle && layout.IsRecord(d.st.Locks, e) {
			stale++
		}
	}
	f.Seen = fmt.Sprintf("%d names have a record; interlock prune would remove up to %d", len(entries), stale)
	if stale >= many {
		f.Level = driver.LevelWarn
		f.Why = "they take files of the disk, and what reads all records takes that much longer"
		f.Mend = "interlock prune, now and then: deploy/systemd has a timer"
	}
	return f
}

// examineFlock tries what the store is made of.
func (d *Driver) examineFlock() driver.Finding {
	f := driver.Finding{Code: "S19", Title: "flock", Seen: "a lock keeps another one out, and a socket can be connected to"}
	if err := d.st.SelfTest(); err != nil {
		f.Level, f.Seen = driver.LevelBad, err.Error()
		f.Why, f.Mend = "that is what the store is made of", "a directory on a disk of this machine"
	}
	return f
}

// examineDisk measures how long a write to the disk takes. A grant waits for one at most once a minute.
func (d *Driver) examineDisk(e driver.Exam) driver.Finding {
	f := driver.Finding{Code: "S22", Title: "disk"}
	took, err := d.flush()
	if err != nil {
		f.Level, f.Seen = driver.LevelBad, fmt.Sprintf("nothing can be written: %v", err)
		f.Why, f.Mend = "no lock can be had", "as the message says"
		return f
	}
	worst := slices.Max(took)
	f.Seen = fmt.Sprintf("the slowest of %d writes took %v to be on the disk", len(took), worst.Round(10*time.Microsecond))
	if worst > e.Grace {
		f.Level = driver.LevelWarn
		f.Why = fmt.Sprintf("a grant waits for the disk now and then: one that takes longer than a grace of %v may come too late and be given back", e.Grace)
		f.Mend = "a disk that is less busy, or a longer TTL"
	}
	return f
}

// flush writes a file to the disk, time after time.
func (d *Driver) flush() (took []time.Duration, err error) {
	path := filepath.Join(d.st.Sessions, layout.TestPrefix+layout.HashOf(driver.NewID()).String())
	file, err := d.st.Create(path)
	if err != nil {
		return nil, err
	}
	defer os.Remove(path)
	defer file.Close()
	for range flushes {
		began := time.Now()
		if _, err := file.WriteAt([]byte("interlock doctor\n"), 0); err != nil {
			return nil, err
		}
		if err := d.st.Sync(file); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
