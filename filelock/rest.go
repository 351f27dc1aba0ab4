//go:build linux || darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
)

// A job that outlives the process that held its lock has the lock of the session's file: it inherited that, see Inherit.
// So who comes next can find it, when the session's time is over as well as when an operator has broken the claim. Which
// names the session stood for says its roll, which a process that is killed leaves as it was.

// Rest implements driver.RestFinder.
func (d *Driver) Rest(ctx context.Context, name string) (rest []driver.Rest, err error) {
	files, err := d.left(ctx, name)
	for _, f := range files {
		if pids, some := f.heirs(); some {
			rest = append(rest, driver.Rest{Owner: f.text.Owner, Lives: !f.deserted(), PIDs: pids})
		}
		f.file.Close()
	}
	return rest, err
}

// SignalRest implements driver.RestFinder. On macOS, which does not say who has a file, it answers errors.ErrUnsupported.
func (d *Driver) SignalRest(ctx context.Context, name string, sig os.Signal) error {
	files, err := d.left(ctx, name)
	for _, f := range files {
		err = errors.Join(err, f.signalHeirs(sig))
		f.file.Close()
	}
	return err
}

// left returns the files of the sessions whose owners are gone while somebody still has their lock, and which stood in
// the line of name and do so no more. The caller closes them.
//
// Who is just entering the line is in his roll and not in it, and so is who has just left. Neither is gone: the session
// has time left, and its owner is alive.
func (d *Driver) left(ctx context.Context, name string) (files []*sessionFile, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	keys, err := d.st.sessionKeys()
	if err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	path := d.Key(name)
	var standing map[sessionKey]bool
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
func (d *Driver) goneFrom(record string, key sessionKey) (f *sessionFile, gone bool, err error) {
	names := map[string]bool{}
	if _, err := d.st.readRoll(key, rollStands, names); err != nil || !names[record] {
		return nil, false, err
	}
	if f, err = d.st.openSession(key); err != nil {
		return nil, false, err
	}
	if (f.over() || f.deserted()) && !f.orphaned() {
		return f, true, nil
	}
	f.file.Close()
	return nil, false, nil
}

// sessionsIn returns whose claims stand in the line of a record.
func (d *Driver) sessionsIn(path string) (map[sessionKey]bool, error) {
	keys := map[sessionKey]bool{}
	f, err := d.st.openRecord(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return keys, nil
	}
	if err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	defer f.unref()
	d.stats.reads.Add(1)
	r, _, err := f.peek()
	if err != nil {
		return nil, err
	}
	if r.boot == d.st.boot {
		for i := range r.Claims {
			keys[sessionKey([]byte(r.Claims[i].Session))] = true
		}
	}
	return keys, nil
}

// hasHeirs reports whether there must be heirs of a session, seen or not: who has the lock of an owner who is dead has
// inherited it.
func (f *sessionFile) hasHeirs() bool { return f.deserted() && !f.orphaned() }

// deserted reports whether the process that opened the session has ended: the socket, which nobody inherits, is there and
// takes no link.
func (f *sessionFile) deserted() bool {
	path, err := f.socket()
	if err != nil {
		return false
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}
