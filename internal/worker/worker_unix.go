//go:build unix

package worker

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest"
)

// Stop stops it somewhere, and returns when all of it stands still.
func (w *Worker) Stop(t drivertest.T) {
	t.Helper()
	timer := time.NewTimer(rand.N(3 * time.Millisecond))
	<-timer.C
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatalf("worker: %v", err)
	}
	if _, err := syscall.Wait4(w.cmd.Process.Pid, nil, syscall.WUNTRACED, nil); err != nil {
		t.Fatalf("worker: %v", err)
	}
}
