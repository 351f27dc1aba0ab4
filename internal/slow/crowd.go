//go:build linux

package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	abreast = 3                      // neighbours on each core
	burst   = 100 * time.Microsecond // for which one burns until it lets others have the core
)

// crowd starts the neighbours, on every core that this process may use, and returns how many cores those are.
func crowd() (cores int, err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return 0, fmt.Errorf("which cores there are: %w", err)
	}
	cores = allowed.Count()
	total := abreast * cores
	runtime.GOMAXPROCS(total + 2) // neighbours do not give theirs back
	settled := make(chan error)
	for core := 0; allowed.Count() > 0; core++ {
		if !allowed.IsSet(core) {
			continue
		}
		allowed.Clear(core)
		for range abreast {
			go func() {
				runtime.LockOSThread()
				settled <- settle(core)
				burn()
			}()
		}
	}
	for range total {
		err = errors.Join(err, <-settled)
	}
	return cores, err
}

// settle keeps the calling thread on a core, and asks for slices of time as short as its bursts: whoever asks for less at a
// time is let in earlier. A kernel before 6.12 takes no notice of that.
func settle(core int) error {
	var only unix.CPUSet
	only.Set(core)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return fmt.Errorf("stay on core %d: %w", core, err)
	}
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Runtime: uint64(burst)}, 0) // else it is less of a nuisance
	return nil
}

// burn uses a core up.
func burn() {
	for {
		for from := time.Now(); time.Since(from) < burst; {
			continue
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}
