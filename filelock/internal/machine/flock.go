//go:build linux || darwin

package machine

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Flock is flock(2) that does not wait, and that signals do not interrupt. It reports false when somebody else has the
// lock.
func Flock(fd, how int) (bool, error) {
	for {
		switch err := unix.Flock(fd, how|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// Unflock releases a lock.
func Unflock(fd int) { _ = unix.Flock(fd, unix.LOCK_UN) } // cannot fail on an open file

// LockFor is flock with a time limit, for locks that are rare.
func LockFor(fd int, limit time.Duration) error {
	over := time.NewTimer(limit)
	defer over.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		if ok, err := Flock(fd, unix.LOCK_EX); ok || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-over.C:
			return fmt.Errorf("not done after %v", limit)
		}
	}
}
