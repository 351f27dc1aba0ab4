//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
)

// A job that outlives the process that held its lock has the lock of the session's file: it inherited that, see Inherit.
// So who comes next can find it, when the session's time is over as well as when an operator has broken the claim. Which
// names the session stood for says its roll, which a process that is killed leaves as it was.

// Rest implements driver.RestFinder.
func (d *Driver) Rest(ctx context.Context, name string) (rest []driver.Rest, err error) {
	files, err := d.left(ctx, name)
	for _, f := range files {
		if pids, some := f.Heirs(); some {
			rest = append(rest, driver.Rest{Owner: f.Text.Owner, Lives: !f.Deserted(), PIDs: pids})
		}
		f.File.Close()
	}
	return rest, err
}

// SignalRest implements driver.RestFinder. On macOS, which does not say who has a file, it answers errors.ErrUnsupported.
func (d *Driver) SignalRest(ctx context.Context, name string, sig os.Signal) error {
	files, err := d.left(ctx, name)
	for _, f := range files {
		err = errors.Join(err, f.SignalHeirs(sig))
		f.File.Close()
	}
	return err
}

// left returns the files of the sessions whose owners are gone while somebody still has their lock, and which stood in
// the line of name and do so no more. The caller closes them.
//
// Who is just entering the line is in his roll and not in it, and so is who has just left. Neither is gone: the session
// has time left, and its owner is alive.
func (d *Driver) left(ctx context.Context, name string) (files []*layout.SessionFile, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	keys, err := d.st.SessionKeys()
	if err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	path := d.Key(name)
	var standing map[layout.SessionKey]bool
	for _, key := range keys {
		if d.local(key) != nil {
			continue
		}
		if standing == nil {
			if standing, err = d.sessionsIn(path); err != nil {
				return nil, err
			}
		}
		if standing[key] {
			continue
		}
		f, gone, ferr := d.goneFrom(filepath.Base(path), key)
		switch {
		case ferr != nil && !errors.Is(ferr, fs.ErrNotExist): // else it has just ended
			err = errors.Join(err, ferr)
		case gone:
			files = append(files, f)
		}
	}
	return files, err
}

// goneFrom returns the file of a session that is not in the line of the record any more, if its owner is gone and
// somebody has its lock.
func (d *Driver) goneFrom(record string, key layout.SessionKey) (f *layout.SessionFile, gone bool, err error) {
	names := map[string]bool{}
	if _, err := d.st.ReadRoll(key, layout.RollStands, names); err != nil || !names[record] {
		return nil, false, err
	}
	if f, err = d.st.OpenSession(key); err != nil {
		return nil, false, err
	}
	if (f.Over() || f.Deserted()) && !f.Orphaned() {
		return f, true, nil
	}
	f.File.Close()
	return nil, false, nil
}

// sessionsIn returns whose claims stand in the line of a record.
func (d *Driver) sessionsIn(path string) (map[layout.SessionKey]bool, error) {
	keys := map[layout.SessionKey]bool{}
	f, err := d.st.OpenRecord(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return keys, nil
	}
	if err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	defer f.Unref()
	d.stats.reads.Add(1)
	r, _, err := f.Peek()
	if err != nil {
		return nil, err
	}
	if r.Boot == d.st.Boot {
		for i := range r.Claims {
			keys[layout.SessionKey([]byte(r.Claims[i].Session))] = true
		}
	}
	return keys, nil
}
