//go:build !linux && !darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// Main returns at once: there are no workers on this system.
func Main() {}

// Run answers errors.ErrUnsupported on this system, where processes cannot be stopped and
// continued.
func Run(context.Context, Config, io.Writer) (*Report, error) {
	return nil, fmt.Errorf("torture: %s cannot stop and continue processes: want Linux or macOS: %w", runtime.GOOS, errors.ErrUnsupported)
}
