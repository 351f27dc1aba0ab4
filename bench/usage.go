package main

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// cpuTime is the CPU time that this process has used, in nanoseconds, user
// and system.
func cpuTime() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic("bench: getrusage: " + err.Error())
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// writes is the number of write system calls that this process has made, on
// files and sockets alike; -1 where the kernel does not count them. Stores
// that keep their state in files cannot write without showing here.
func writes() int64 {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return -1
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("syscw: ")); ok {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return -1
}
