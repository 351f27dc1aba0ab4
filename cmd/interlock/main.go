// Command interlock runs commands under locks, and shows who holds and waits. See interlock --help.
package main

import (
	"os"

	"github.com/interlock-go/interlock/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
