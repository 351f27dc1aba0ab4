// Package command is the command interlock as a function, for those who build it with a store of
// their own.
//
// The command knows the stores that its program imports. This is all of the one in cmd/interlock,
// with one more:
//
//	package main
//
//	import (
//		_ "example.org/shop/rowlock" // calls driver.Register("row", …) from init
//
//		_ "github.com/interlock-go/interlock/all" // the stores of Interlock itself, file: among them
//		"github.com/interlock-go/interlock/command"
//	)
//
//	func main() { command.Main() }
//
// and then
//
//	$ go build -o interlock . && export INTERLOCK_STORE=row://db.example.org/locks
//	$ ./interlock run report -- ./report.sh
//	$ ./interlock ls
//
// has run, elect, ls, show, watch and break over it. ls, show and break ask for [driver.Inspector];
// watch asks for [driver.Watcher], too, or looks every second. Without --store the command uses
// filelock, which must be among the imports then. What the locks of the store are worth is tried by
// a program of some lines with package torture.
//
// An init that does more than to register slows every start of the command. Its guards, which are
// the same program executed again, begin before most of what the program links is initialized.
package command
