package guard

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// betweenForks calls do when no child of this process is between fork and exec, and lets none begin
// meanwhile. Ctrl-Z stops such a copy as well, and the thread that forked sleeps until
// the copy executes its program, which keeps the kernel from stopping the process as a whole:
// nobody sees it stopped, so nobody continues it. So copies are continued first.
func betweenForks(do func()) {
	for !forking.TryLock() {
		signalCopies(unix.SIGCONT)
		<-time.NewTimer(time.Millisecond).C
	}
	defer forking.Unlock()
	do()
}

// signalCopies sends sig to children that are between fork and exec, and so still copies of this
// process.
func signalCopies(sig unix.Signal) {
	own, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for _, pid := range lookUp()(os.Getpid()) {
		if program, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil && program == own {
			_ = unix.Kill(pid, sig)
		}
	}
}
