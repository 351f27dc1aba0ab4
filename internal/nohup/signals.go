// Package nohup tells which signals end a program that cleans up before it goes.
package nohup

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals are SIGTERM, and Ctrl-C and SIGHUP unless this process was started to ignore them: nohup ignores SIGHUP, so that the
// program goes on without its terminal, and a shell Ctrl-C for what it has put into the background.
func Signals() []os.Signal {
	ends := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			ends = append(ends, s)
		}
	}
	return ends
}
