package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// BootClock reads the clock that time-to-live is measured with, in nanoseconds. On macOS CLOCK_MONOTONIC goes on while
// the machine sleeps.
func BootClock() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("filelock: CLOCK_MONOTONIC: %v", err))
	}
	return ts.Nano()
}

// bootID identifies this boot of the machine.
func bootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", fmt.Errorf("filelock: the boot id of this machine is needed: %w", err)
	}
	return id, nil
}

// CheckClock has nothing to refuse: macOS has one clock for all.
func CheckClock() error { return nil }

// remoteFS returns the name of the file system of fd if it is one that cannot carry the store, else "".
func remoteFS(fd int) (string, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return "", err
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	if st.Flags&unix.MNT_LOCAL == 0 {
		return name, nil
	}
	switch name {
	case "nfs", "smbfs", "afpfs", "webdav", "macfuse", "osxfuse", "fusefs", "virtiofs", "lifs":
		return name, nil
	}
	return "", nil
}

// InMemory has nothing to report: macOS has no such file system that comes with a folder.
func InMemory(string) bool { return false }

// maxSocketPath is the room in the address of a Unix socket, with the zero at its end.
const maxSocketPath = 104

// SocketPath returns a path by which the socket name of the directory store can be bound and connected to. Where the
// directory's own path is too long for the address of a socket, the socket is in a directory of this user in the
// system's temporary folder; the session's file says where.
func SocketPath(store *os.File, name string) (string, error) {
	if path := filepath.Join(store.Name(), name); len(path) < maxSocketPath {
		return path, nil
	}
	dir := filepath.Join("/tmp", "interlock-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return "", fmt.Errorf("filelock: a directory for sockets: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("filelock: a directory for sockets: %w", err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; !info.IsDir() || int(owner) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("filelock: %s is not a directory that only this user can write to: remove it, or use a store with a shorter path", dir)
	}
	return filepath.Join(dir, name), nil
}

// Nap sleeps for a short time.
func Nap(d time.Duration) { time.Sleep(d) }

// NoAccessTime does not exist on macOS.
const NoAccessTime = 0

// Links returns how many names a file has.
func Links(fd int) (uint32, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return uint32(st.Nlink), err
}

// LockOwner would say who has the flock on a file: macOS does not tell.
func LockOwner(uint64) string { return "" }
