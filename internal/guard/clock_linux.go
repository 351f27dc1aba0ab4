package guard

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	sendFlags    = unix.MSG_NOSIGNAL
	receiveFlags = unix.MSG_CMSG_CLOEXEC
)

// Now reads the clock of deadlines: nanoseconds since the machine was started, suspension included,
// the same in all its processes.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("guard: CLOCK_BOOTTIME cannot be read: %v", err)) // Linux has it since 2.6.39
	}
	return t.Nano()
}

// alarm rings on C at or soon after the time set last. It is a timerfd on CLOCK_BOOTTIME: Go's
// timers stand still while the machine is suspended, this one rings at once when it wakes up.
type alarm struct {
	C    <-chan struct{}
	file *os.File
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("guard: timer: %w", err)
	}
	c := make(chan struct{}, 1)
	a := &alarm{C: c, file: os.NewFile(uintptr(fd), "timer")}
	go func() {
		var count [8]byte
		for {
			if _, err := a.file.Read(count[:]); err != nil {
				return
			}
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}()
	return a, nil
}

// set moves the alarm to the time at, or silences it where at is 0.
func (a *alarm) set(at int64) {
	raw, err := a.file.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = raw.Control(func(fd uintptr) {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(at)}
		_ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil)
	})
}

func (a *alarm) close() { _ = a.file.Close() }
