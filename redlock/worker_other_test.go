//go:build !unix

package redlock_test

import "github.com/interlock-go/interlock/driver/drivertest"

// stop would stop it.
func (w *worker) stop(t drivertest.T) { t.Fatalf("worker: this system cannot stop a process") }
