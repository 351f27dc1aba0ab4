package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// version is the release's, which the build sets: this module has no tags of its own, from which the go command would know it.
var version string

// versionFlag is what people try first to see what they have.
type versionFlag bool

// BeforeReset prints the versions and ends the command, whatever else stands on its line. What is no release says its revision, or (devel).
func (versionFlag) BeforeReset(k *kong.Kong) error {
	v := version
	if info, ok := debug.ReadBuildInfo(); v == "" && ok {
		v = info.Main.Version
	}
	if v == "" { // a test, which has none
		v = "(devel)"
	}
	_, err := fmt.Fprintf(k.Stdout, "interlock-lab %s %s\n", v, runtime.Version())
	k.Exit(0)
	return err
}
