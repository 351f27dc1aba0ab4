//go:build !unix

package worker

import "github.com/interlock-go/interlock/driver/drivertest"

// Stop would stop it.
func (w *Worker) Stop(t drivertest.T) { t.Fatalf("worker: this system cannot stop a process") }
