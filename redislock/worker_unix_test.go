//go:build unix

package redislock_test

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest"
)

// stop stops it somewhere, and returns when all of it stands still.
func (w *worker) stop(t drivertest.T) {
	timer := time.NewTimer(time.Duration(rand.IntN(3000)) * time.Microsecond)
	<-timer.C
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatalf("worker: %v", err)
	}
	if _, err := syscall.Wait4(w.cmd.Process.Pid, nil, syscall.WUNTRACED, nil); err != nil {
		t.Fatalf("worker: %v", err)
	}
}
