//go:build unix

package command

import (
	"os"

	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/internal/guard"
)

// Main runs the command with the arguments of the process and exits with its status. It is the first thing that main
// calls: the process may be a guard of a command, which this program starts by executing itself.
func Main() {
	guard.Main() // does not return in the process that guards a command
	os.Exit(cli.Main(os.Args[1:]))
}
