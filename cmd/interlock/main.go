// Command interlock runs commands under locks, and shows who holds and waits. See interlock --help.
package main

import (
	"os"

	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/torture"
)

func main() {
	guard.Main()   // does not return in the process that guards a command
	torture.Main() // nor this one in a worker
	os.Exit(cli.Main(os.Args[1:]))
}
