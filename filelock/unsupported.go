//go:build !linux && !darwin

package filelock

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/interlock-go/interlock/driver"
)

// Driver is a store in a directory. On this system there is none.
type Driver struct{}

// New returns an error that matches errors.ErrUnsupported: this system lacks what the store is made of.
func New(string, *Options) (*Driver, error) {
	return nil, fmt.Errorf("filelock: no embedded store on %s, use Linux or macOS, or a server: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Traits implements driver.Driver.
func (d *Driver) Traits() driver.Traits { return traits() }

// Open implements driver.Driver.
func (d *Driver) Open(context.Context, driver.Spec) (driver.Session, error) {
	_, err := New("", nil)
	return nil, err
}

// Close implements driver.Driver.
func (d *Driver) Close(context.Context) error { return nil }
