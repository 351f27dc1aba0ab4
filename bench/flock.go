package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// flocker locks as scripts do: flock(2) on a file that is opened for the lock
// and closed to release it. System calls are made directly, because os.File
// would add its own bookkeeping to a floor of a few microseconds.
type flocker struct{ dir string }

func openFlock(_ context.Context, p place) (locker, error) { return flocker{p.Dir}, nil }

func (f flocker) mutex(name string) mutex {
	return flockFile(filepath.Join(f.dir, url.PathEscape(name)))
}

func (f flocker) close() error { return nil }

type flockFile string

func (f flockFile) lock(context.Context) (func() error, error) {
	path := string(f)
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("flock: open %s: %w", path, err)
	}
	for {
		err = unix.Flock(fd, unix.LOCK_EX)
		if err == nil {
			return func() error { return unix.Close(fd) }, nil
		}
		if err != unix.EINTR {
			unix.Close(fd)
			return nil, fmt.Errorf("flock: %s: %w", path, err)
		}
	}
}
