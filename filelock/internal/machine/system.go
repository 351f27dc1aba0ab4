//go:build linux || darwin

package machine

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// System is what a store asks its machine, so that tests can be another one.
type System struct {
	BootID    func() (string, error)
	BootClock func() int64 // exact
	FastClock func() int64 // cheap, never behind
	WallClock func() time.Time
	RemoteFS  func(fd int) (string, error)
	InMemory  func(dir string) bool // what is there is gone after a reboot
	Room      func(dir string) (Room, error)
	Sync      func(*os.File) error // for the doctor
}

// Host is the machine that this process runs on.
var Host = System{bootID, BootClock, newFastClock(BootClock).now, time.Now, remoteFS, InMemory, roomOf, (*os.File).Sync}

// Room is what a file system has left for this user.
type Room struct {
	Bytes, Files uint64
	Counts       bool // files; some file systems make them as they come
}

// roomOf asks how much room there is where a folder is.
func roomOf(dir string) (r Room, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return r, fmt.Errorf("statfs: %w", err)
	}
	return Room{uint64(st.Bavail) * uint64(st.Bsize), uint64(st.Ffree), st.Files > 0}, nil //nolint:gosec,unconvert // their types differ by system
}
