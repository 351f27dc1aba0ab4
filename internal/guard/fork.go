//go:build linux || darwin

package guard

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// processName is argv[0] of the guard process; argv[1] is the number of its end of the socketpair.
const processName = "interlock-guard"

// forking is held while this process forks.
var forking sync.Mutex

// forkGuard executes this program again with the descriptor end, in a process group of its own.
//
// A child that Ctrl-Z stops before it executes its program keeps the thread that forked asleep, and
// that thread keeps its right to run Go code. A garbage collection stops everything else for a
// moment, waits for that thread too, and so for the child: no goroutine is left to continue or kill
// it. So nothing is collected until the program is executed: in interlock while it forks, in the
// guard from its beginning on, where the command's words and environment are far below the limit.
func forkGuard(end int, pauseGC func() (resume func())) (int, error) {
	program, err := ownProgram()
	if err != nil {
		return 0, fmt.Errorf("guard: find this program: %w", err)
	}
	defer pauseGC()()
	forking.Lock()
	defer forking.Unlock()
	pid, err := syscall.ForkExec(program, []string{processName, strconv.Itoa(end)}, &syscall.ProcAttr{
		// The first variable of a name counts.
		Env:   append([]string{"GOGC=off", "GOMEMLIMIT=128MiB"}, os.Environ()...),
		Files: inPlace(end),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("guard: execute %s: %w", program, err)
	}
	return pid, nil
}
