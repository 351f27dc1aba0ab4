package nogc_test

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
	"github.com/interlock-go/interlock/internal/guard/nogc"
)

var garbage []byte

// While the collector is paused, a thread that sleeps as one that forks does holds up nobody else:
// another goroutine wakes it. A collection that goes on, even in its last step, would wait for the
// thread, and the goroutine for the collection.
func TestPauseLeavesNothingOfACollection(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	for range 60 {
		for range 30 {
			garbage = make([]byte, 4096) // and a collection begins every few rounds
		}
		resume := nogc.Pause()
		woken := wokenAsleep(t)
		resume()
		if !woken {
			t.Fatal("nothing runs while a thread sleeps as one that forks does")
		}
	}
}

// wokenAsleep lets this thread sleep with all signals blocked and without giving up its right to
// run Go code, as by vfork, until another goroutine wakes it.
func wokenAsleep(t *testing.T) bool {
	t.Helper()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := unix.Write(pipe[1], []byte{0})
		written <- err
	}()
	fd := unix.PollFd{Fd: int32(pipe[0]), Events: unix.POLLIN}
	patience := unix.NsecToTimespec(int64(guardtest.Patience()))
	blocked := ^uint64(0) // a set of signals as the kernel has it
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fd)), 1,
		uintptr(unsafe.Pointer(&patience)), uintptr(unsafe.Pointer(&blocked)), unsafe.Sizeof(blocked), 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Close(pipe[0]), unix.Close(pipe[1])
	return n == 1
}
