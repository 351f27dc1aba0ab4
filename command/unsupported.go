//go:build !unix

package command

import (
	"fmt"
	"os"
	"runtime"
)

// Main says that the command cannot be had on this system, and exits with the status 70.
func Main() {
	fmt.Fprintf(os.Stderr, "interlock: %s has no signals and no groups of processes, which the command needs: want Linux or macOS\n", runtime.GOOS)
	os.Exit(70)
}
