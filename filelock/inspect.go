//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// Lines implements driver.Inspector: it reads the records that the rolls of all sessions name, without locks. Where these
// do not say enough, as beside a program of a version without rolls, it reads every record of the directory. Records that
// cannot be read make an error beside the lines of the others.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	names, ok := d.standing()
	if !ok {
		entries, err := os.ReadDir(d.st.Locks)
		if err != nil {
			return nil, fmt.Errorf("filelock: %w", err)
		}
		names = map[string]bool{}
		for _, e := range entries {
			if _, ok := layout.HashIn(e.Name()); ok {
				names[e.Name()] = true
			}
		}
	}
	var lines []driver.Line
	var failed error
	for name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, err := d.show(filepath.Join(d.st.Locks, name), "")
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if strings.HasPrefix(l.Name, prefix) && len(l.Claims) > 0 {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, func(a, b driver.Line) int { return strings.Compare(a.Name, b.Name) })
	return lines, failed
}

// rollTries is how often the rolls are read before the reader takes all records instead.
const rollTries = 3

// standing returns the names of the files of all records in which somebody stands whose session is not over, and some
// more. It reports false if that cannot be told: because of a session of a version that keeps no roll, of a roll that is
// damaged or does not name all, or because too much happens meanwhile.
func (d *Driver) standing() (names map[string]bool, ok bool) {
	for range rollTries {
		since := uint64(d.st.BootClock())
		before, err := d.st.SessionKeys()
		if err != nil {
			return nil, false
		}
		names, ok = map[string]bool{}, true
		for _, key := range before {
			all, err := d.st.ReadRoll(key, since, names)
			if errors.Is(err, fs.ErrNotExist) && d.over(key, true) {
				continue
			}
			ok = ok && all && err == nil
		}
		// Who closes a session in between takes its file away first.
		if after, err := d.st.SessionKeys(); ok && err == nil && slices.Equal(before, after) {
			return names, true
		}
	}
	return nil, false
}

// Line implements driver.Inspector.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	if err := ctx.Err(); err != nil {
		return driver.Line{}, err
	}
	return d.show(d.Key(name), name)
}

// show reads one record as people see it. Claims whose sessions are over are left out: they stand there until somebody
// wants the lock.
func (d *Driver) show(path, name string) (driver.Line, error) {
	f, err := d.st.OpenRecord(path, false)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(d.st.Locks); err != nil { // nobody knows who holds in a directory that was moved, or whose disk is not mounted
			return driver.Line{}, fmt.Errorf("filelock: %w", err)
		}
		return driver.Line{Name: name}, nil
	}
	if err != nil {
		return driver.Line{}, fmt.Errorf("filelock: %w", err)
	}
	defer f.Unref()
	d.stats.reads.Add(1)
	r, _, err := f.Peek()
	if err != nil {
		return driver.Line{}, err
	}
	l := driver.Line{Name: r.Name, Fence: r.Fence}
	if r.Generation == 0 {
		l.Name = name
	}
	if r.Boot != d.st.Boot {
		return l, nil
	}
	for _, c := range r.Claims {
		if !d.over(layout.SessionKey([]byte(c.Session)), true) {
			l.Claims = append(l.Claims, d.describe(c))
		}
	}
	return l, nil
}

// Break implements driver.Inspector. The mark in the record carries the end of the owner's time, so that renewals do
// not put it off.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	n, err := d.names.get(name)
	if err != nil {
		return err
	}
	defer d.names.put(n)
	if !n.exists() {
		return fmt.Errorf("filelock: break: no claim %s stands in the line of %q: it has left: %w", publicID, name, driver.ErrRefused)
	}
	o, err := n.begin(ctx)
	if err != nil {
		return err
	}
	defer n.endTurn()
	c, err := o.line.Break(publicID, fence, now)
	if err != nil {
		n.abort(o)
		return fmt.Errorf("filelock: break: %w", err)
	}
	if i := o.line.Find(c.ID); i < 0 {
		delete(o.line.Ends, c.ID)
		o.line.RememberBroken(c.ID)
	} else if !c.Broken {
		if o.line.Ends == nil {
			o.line.Ends = map[string]int64{}
		}
		o.line.Ends[c.ID] = d.until(layout.SessionKey([]byte(c.Session)), o.boot)
	}
	if i := slices.IndexFunc(o.line.Claims, func(c line.Claim) bool { return !c.Held }); i >= 0 {
		o.notify(o.line.Claims[i].Session) // it may have watched the one who left, and it must know the mark's end
	}
	o.notify(c.Session)
	if err := o.settle(); err != nil {
		d.later(n)
	}
	return n.commit(o)
}

// watchEvery is how often Watch looks at the record.
const watchEvery = 50 * time.Millisecond

// Watch implements driver.Watcher. It reads the record again and again; a stranger is not told of changes, so that
// nobody who watches costs those who lock.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchEvery, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}

var _ interface {
	driver.Driver
	driver.Keyer
	driver.Inspector
	driver.Pruner
	driver.Watcher
	driver.RestFinder
} = (*Driver)(nil)
