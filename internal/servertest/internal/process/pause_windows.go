package process

import "errors"

// Pause fails: there is nothing like SIGSTOP here.
func (p *Process) Pause() error { return errors.ErrUnsupported }

// Resume does nothing.
func (p *Process) Resume() error { return nil }
