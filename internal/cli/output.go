package cli

import (
	"errors"
	"fmt"
	"io"
)

// output is where the answers of a command go. It keeps the first error, for callers that write
// lines and ignore errors.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// unless returns the error that a command has ended with, or that its answer could not be written
// where that is all.
func (o *output) unless(err error) error {
	if o.err == nil || err != nil && !errors.Is(err, o.err) {
		return err
	}
	return &exitError{exitOutput, fmt.Errorf("cannot write the answer: %w", o.err)}
}
