package filelock

import (
	"errors"
	"fmt"
	"os"
)

// heirs knows nobody, because macOS does not say who has a file, but whether there must be some.
func (f *sessionFile) heirs() (pids []int, some bool) { return nil, f.hasHeirs() }

// signalHeirs finds nobody to send a signal to.
func (f *sessionFile) signalHeirs(os.Signal) error {
	return fmt.Errorf("filelock: macOS does not say which processes have inherited a session: %w", errors.ErrUnsupported)
}
