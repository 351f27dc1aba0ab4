package layout

import (
	"errors"
	"fmt"
	"os"
)

// Heirs knows nobody, because macOS does not say who has a file, but whether there must be some.
func (f *SessionFile) Heirs() (pids []int, some bool) { return nil, f.hasHeirs() }

// SignalHeirs finds nobody to send a signal to.
func (f *SessionFile) SignalHeirs(os.Signal) error {
	return fmt.Errorf("filelock: macOS does not say which processes have inherited a session: %w", errors.ErrUnsupported)
}
