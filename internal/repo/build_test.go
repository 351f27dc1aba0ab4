package repo

import (
	"encoding/json"
	"strings"
	"testing"
)

// The library builds wherever Go programs run; a store that cannot work there says so when it is opened. The command
// needs signals and terminals.
func TestBuildsOnEveryPlatform(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles everything three times: make proof, and make check")
	}
	var libraries, everything []string
	for _, p := range list(t, "./...") {
		everything = append(everything, p.ImportPath)
		if p.Name != "main" && !internal(p.ImportPath) && !below(p.ImportPath, "examples") {
			libraries = append(libraries, p.ImportPath)
		}
	}
	for platform, pkgs := range map[string][]string{"linux": everything, "darwin": everything, "windows": libraries} {
		t.Run(platform, func(t *testing.T) {
			command(t, []string{"GOOS=" + platform, "CGO_ENABLED=0"}, "go", append([]string{"build"}, pkgs...)...)
		})
	}
}

// A replace line would break go install of the command; a newer Go or a toolchain line would be forced on every user.
func TestModuleAsksLittleOfItsUsers(t *testing.T) {
	var mod struct {
		Go, Toolchain string
		Replace, Tool []any
	}
	if err := json.Unmarshal(command(t, nil, "go", "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(mod.Go, "1.25") {
		t.Errorf("go.mod says go %s: the oldest Go that works is 1.25", mod.Go)
	}
	if mod.Toolchain != "" {
		t.Errorf("go.mod asks for toolchain %s", mod.Toolchain)
	}
	if len(mod.Replace) > 0 {
		t.Errorf("go.mod replaces %v", mod.Replace)
	}
	if len(mod.Tool) > 0 {
		t.Errorf("go.mod has tools, which belong into tools/go.mod: %v", mod.Tool)
	}
}
