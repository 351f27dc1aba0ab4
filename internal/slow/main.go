//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/interlock-go/interlock/internal/nohup"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "slow: nothing to run: want slow COMMAND [ARGUMENT]…")
		os.Exit(2)
	}
	cores, err := crowd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slow:", err)
		os.Exit(1)
	}
	fmt.Printf("slow: %d busy neighbours on each of %d cores until this is over\n", abreast, cores)
	os.Exit(run(exec.Command(os.Args[1], os.Args[2:]...)))
}

// run runs the command with what was given to this process, and returns its status.
func run(cmd *exec.Cmd) int {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, nohup.Signals()...)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "slow:", err)
		return 127
	}
	go func() {
		for s := range signals {
			if s != os.Interrupt { // which a terminal sends to the command as well
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "slow:", err)
	return 1
}
