// Command interlock runs commands under locks, and shows who holds and waits. See interlock --help.
package main

import (
	_ "github.com/interlock-go/interlock/all" // every store of this module; package command says how to add others
	"github.com/interlock-go/interlock/command"
)

func main() { command.Main() }
