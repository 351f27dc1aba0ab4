//go:build linux || darwin

package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// Store is the directory: where things are, and with which rights.
//
//	DIR/floor              the layout's version, the boot that the store is in, and the tokens' durable floor
//	DIR/locks/…            a record per name
//	DIR/sessions/ID        a file per session, locked by the process tree that acts for it
//	DIR/sessions/ID.s      its socket
//	DIR/sessions/ID.lines  its roll: in which lines it stands
type Store struct {
	Dir, Locks, Sessions string
	SessionsDir          *os.File
	fileMode, dirMode    os.FileMode // 0600 and 0700, or 0660 and 0770 in a directory that a group shares
	Boot                 Hash
	machine.System
}

// OpenStore makes or opens the directory and refuses one that cannot carry a store.
func OpenStore(dir string, sys machine.System) (*Store, error) {
	if dir == "" {
		return nil, errors.New("filelock: no directory was named: want one on a file system of this machine")
	}
	if err := machine.CheckClock(); err != nil {
		return nil, err
	}
	id, err := sys.BootID()
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	st := &Store{
		Dir: abs, Locks: filepath.Join(abs, "locks"), Sessions: filepath.Join(abs, "sessions"),
		Boot: HashOf(id), System: sys,
	}
	if _, err := os.Stat(abs); errors.Is(err, fs.ErrNotExist) {
		if err := st.checkFS(filepath.Dir(abs)); err != nil {
			return nil, err
		}
		if err := st.makeDir(abs, 0o700); err != nil {
			return nil, err
		}
	}
	if err := st.adopt(); err != nil {
		return nil, err
	}
	if err := st.checkOurs(); err != nil {
		return nil, err
	}
	for _, sub := range []string{st.Locks, st.Sessions} {
		if err := st.makeDir(sub, st.dirMode); err != nil {
			return nil, err
		}
		if err := st.CheckRights(sub); err != nil {
			return nil, err
		}
	}
	if st.SessionsDir, err = os.Open(st.Sessions); err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	return st, nil
}

// Close closes what OpenStore opened. Files of the store that are open stay open.
func (st *Store) Close() error { return st.SessionsDir.Close() }

// makeDir makes a directory unless it is there. Its mode does not depend on the umask.
func (st *Store) makeDir(path string, mode os.FileMode) error {
	err := os.Mkdir(path, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && st.Shared() {
		// What is made in a setgid directory inherits the group and the bit; chmod must not take the bit away.
		err = os.Chmod(path, mode|os.ModeSetgid)
	}
	if err != nil {
		return fmt.Errorf("filelock: cannot make the store: %w: want a directory in one that exists and that this user may write to", err)
	}
	return nil
}

// Shared reports whether a group shares the store.
func (st *Store) Shared() bool { return st.fileMode&0o060 != 0 }

// adopt looks at the store's directory: whose it is decides the rights of all that is made in it.
func (st *Store) adopt() error {
	info, err := os.Stat(st.Dir)
	if err != nil {
		return fmt.Errorf("filelock: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("filelock: %s is not a directory: want one for the store alone", st.Dir)
	}
	st.fileMode, st.dirMode = 0o600, 0o700
	if info.Mode()&os.ModeSetgid != 0 && info.Mode().Perm()&0o020 != 0 {
		st.fileMode, st.dirMode = 0o660, 0o770
	}
	if err := st.CheckRights(st.Dir); err != nil {
		return err
	}
	return st.checkFS(st.Dir)
}

// checkFS refuses a file system on which locks or sockets end at the machine, or are somebody's program.
func (st *Store) checkFS(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("filelock: cannot open the store: %w: want a directory in one that exists", err)
	}
	defer d.Close()
	name, err := st.RemoteFS(int(d.Fd()))
	if err != nil {
		return fmt.Errorf("filelock: cannot tell the file system of %s: %w", dir, err)
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("filelock: %s is on %s, where locks and sockets do not reach other machines or do not work: want a directory on a disk of this machine", dir, name)
}

// CheckRights refuses a directory that is somebody else's or that others may write to, because whoever may write to a
// store can take every lock in it.
func (st *Store) CheckRights(path string) error {
	info, err := os.Lstat(path)
	if path == st.Dir {
		info, err = os.Stat(path) // a symbolic link to a store is a way to name it
	}
	if err != nil {
		return fmt.Errorf("filelock: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("filelock: %s is not a directory: want a directory that was empty, or a store", path)
	}
	perm, owner := info.Mode().Perm(), int(info.Sys().(*syscall.Stat_t).Uid)
	switch {
	case perm&0o002 != 0:
		return fmt.Errorf("filelock: everybody may write to %s (mode %v): want 0700, or 2770 with a group that shares the store", path, info.Mode())
	case perm&0o020 != 0 && info.Mode()&os.ModeSetgid == 0:
		return fmt.Errorf("filelock: the group may write to %s (mode %v): want 0700, or chmod 2770 if the group is to share the store", path, info.Mode())
	case owner != os.Geteuid() && !st.Shared():
		return fmt.Errorf("filelock: %s belongs to user %d, not to this user (%d): want a directory of one's own, or a setgid directory (2770) that a group shares", path, owner, os.Geteuid())
	}
	return nil
}

// Create makes a new file with the store's rights, whatever the umask.
func (st *Store) Create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, st.fileMode)
	if err != nil {
		return nil, err
	}
	if st.Shared() {
		if err := f.Chmod(st.fileMode); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// openOrCreate opens a file for reading and writing and makes it if it is missing. It opens first, because where
// fs.protected_regular is set nobody may pass O_CREAT for a file of another user in a shared directory.
func (st *Store) openOrCreate(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = st.Create(path)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// TestPrefix begins the names of what the self-test makes.
const TestPrefix = "test-"

// SelfTest tries what the store is made of: that a flock keeps another one out, and that a socket can be connected to.
func (st *Store) SelfTest() error {
	refuse := func(what string, err error) error {
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			return fmt.Errorf("filelock: %w", err) // which says nothing of the file system
		}
		if err != nil {
			what = fmt.Sprintf("%s (%v)", what, err)
		}
		return fmt.Errorf("filelock: the file system of %s cannot carry a store: %s: want a directory on a disk of this machine", st.Dir, what)
	}
	name := TestPrefix + HashOf(driver.NewID()).String()
	path := filepath.Join(st.Sessions, name)
	first, err := st.Create(path)
	if err != nil {
		return fmt.Errorf("filelock: cannot write to the store: %w", err)
	}
	defer os.Remove(path)
	defer first.Close()
	second, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("filelock: %w", err)
	}
	defer second.Close()
	if ok, err := machine.Flock(int(first.Fd()), unix.LOCK_EX); !ok {
		return refuse("flock does not work", err)
	}
	if ok, err := machine.Flock(int(second.Fd()), unix.LOCK_SH); ok || err != nil {
		return refuse("flock keeps nobody out", err)
	}
	l, err := st.Listen(name + SocketSuffix)
	if err != nil {
		return refuse("a socket cannot be made", err)
	}
	defer os.Remove(l.Path)
	defer l.Close()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: l.Path, Net: "unix"})
	if err != nil {
		return refuse("a socket cannot be connected to", err)
	}
	return c.Close()
}

// SocketSuffix ends the name of a session's socket.
const SocketSuffix = ".s"

// Listener is a socket of the store and the path by which it is reached.
type Listener struct {
	*net.UnixListener
	Path    string
	InStore bool // and not elsewhere because the store's path is too long
}

// Listen makes the socket name. Its file stays until it is removed.
func (st *Store) Listen(name string) (*Listener, error) {
	path, err := machine.SocketPath(st.SessionsDir, name)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	// To connect takes the right to write; the umask must not decide about it.
	if err := os.Chmod(path, st.fileMode); err != nil {
		l.Close()
		os.Remove(path)
		return nil, err
	}
	_, err = os.Lstat(filepath.Join(st.Sessions, name))
	return &Listener{l, path, err == nil}, nil
}

// RecordPath returns the path of the record of a name.
func (st *Store) RecordPath(name string, h Hash) string { return st.Locks + "/" + RecordName(name, h) }
