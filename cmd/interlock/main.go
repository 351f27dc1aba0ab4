// Command interlock runs commands under locks, and shows who holds and waits. See interlock --help.
package main

import (
	_ "github.com/interlock-go/interlock/all" // every store of this module; package command says how to add others
	"github.com/interlock-go/interlock/command"
	_ "github.com/interlock-go/interlock/command/serve"
	_ "github.com/interlock-go/interlock/internal/early" // a run in the embedded store waits for none of the others to be initialized
	_ "github.com/interlock-go/interlock/internal/early/ahead"
)

func main() { command.Main() }
