// Package serve adds the command interlock serve to a program that calls command.Main:
//
//	import _ "github.com/interlock-go/interlock/command/serve"
//
// It is a package of its own because the server links net/http and its like, which a program that
// only takes locks of its own machine does without.
package serve
