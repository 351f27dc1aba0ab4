//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package fence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
)

func openLocked(_ context.Context, path string, _ os.FileMode) (*os.File, error) {
	return nil, fmt.Errorf("fence: a fenced file (%s) needs flock, which %s has not: %w", path, runtime.GOOS, errors.ErrUnsupported)
}

func syncDir(string) error { return errors.ErrUnsupported }
