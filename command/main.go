//go:build unix

package command

import (
	"os"

	"github.com/interlock-go/interlock/internal/cli"
)

// Main runs the command with the arguments of the process and exits with its status.
//
// A process that guards a command is this program, too, which executes itself. It does not come as
// far as main: see package guard.
func Main() { os.Exit(cli.Main(os.Args[1:])) }
