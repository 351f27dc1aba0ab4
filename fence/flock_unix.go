//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// openLocked opens path, creating it with perm if there is none, and waits for its exclusive flock. Closing the file
// gives the lock up, and so does the death of the process.
//
// While one waits the file may be renamed or removed under its name by whoever holds the lock. The lock
// of a file that no longer has the name excludes nobody, so openLocked looks again after it has the lock and starts
// anew if the name means another file.
func openLocked(ctx context.Context, path string, perm os.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, perm)
		if err != nil {
			return nil, err
		}
		if err := waitFlock(ctx, f); err != nil {
			_ = f.Close()
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		if !mine.Mode().IsRegular() {
			_ = f.Close()
			return nil, fmt.Errorf("fence: %s must be a regular file, not %s", path, mine.Mode().Type())
		}
		named, err := os.Lstat(path)
		if err == nil && os.SameFile(mine, named) {
			return f, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
}

// waitFlock waits for the lock until ctx ends. A wait in the kernel cannot be called off from here, so it is left to
// end by itself in a goroutine: the caller closes f, the descriptor lives until the wait is over, and with it goes
// the lock.
func waitFlock(ctx context.Context, f *os.File) error {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return err
	}
	got := make(chan error, 1)
	go func() { got <- flock(f, syscall.LOCK_EX) }()
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		return fmt.Errorf("fence: waiting for the lock of %s: %w", f.Name(), context.Cause(ctx))
	}
}

func flock(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = conn.Control(func(fd uintptr) {
		for {
			if locked = syscall.Flock(int(fd), how); !errors.Is(locked, syscall.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, locked)
}

// syncDir makes the directory entry of path durable.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
