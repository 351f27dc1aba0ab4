//go:build unix

package command

import (
	"os"

	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/torture"
)

// Main runs the command with the arguments of the process and exits with its status. It is the first thing that main
// calls: the process may be a guard of a command or a worker of torture, which this program starts by executing itself.
func Main() {
	guard.Main()   // does not return in the process that guards a command
	torture.Main() // nor this one in a worker
	os.Exit(cli.Main(os.Args[1:]))
}
