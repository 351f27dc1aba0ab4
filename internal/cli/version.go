package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// modulePath is the module of the command, which the program may need as one of others.
const modulePath = "github.com/interlock-go/interlock"

// moduleVersion returns the version of Interlock in a program, or "" where that is not recorded.
func moduleVersion(info *debug.BuildInfo) string {
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return ""
}

// versions returns the module's version and the toolchain.
func versions() (version, goVersion string) {
	version = "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		if v := moduleVersion(info); v != "" {
			version = v
		}
	}
	return version, goVersion
}

// versionFlag is --version.
type versionFlag bool

// BeforeReset prints the versions and ends the command, whatever else stands on its common.
func (versionFlag) BeforeReset(k *kong.Kong) error {
	version, goVersion := versions()
	_, err := fmt.Fprintf(k.Stdout, "interlock %s %s\n", version, goVersion)
	k.Exit(0)
	return err
}

type versionCommand struct{}

// Run prints the versions.
func (versionCommand) Run(t terminal, common *commonFlags) error {
	version, goVersion := versions()
	if common.JSON {
		return printJSON(t.out, struct {
			Version string `json:"version"`
			Go      string `json:"go"`
		}{version, goVersion})
	}
	_, err := fmt.Fprintf(t.out, "interlock %s %s\n", version, goVersion)
	return err
}
