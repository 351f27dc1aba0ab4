package repo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/interlock-go/interlock"
)

// A pkg is what go list knows about a package.
type pkg struct {
	Dir, ImportPath, Name, Doc         string
	Standard                           bool
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

// own reports whether the import path belongs to this module.
func own(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

// standard reports whether the import path is one of the standard library: those have no dot in their first element.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// internal reports whether only this module may import the package.
func internal(importPath string) bool {
	return own(importPath) && strings.Contains(importPath+"/", "/internal/")
}

// below reports whether the package is the one in the folder, or further down.
func below(importPath, folder string) bool {
	full := path.Join(module, folder)
	return importPath == full || strings.HasPrefix(importPath, full+"/")
}

// list runs go list at the root.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	out := command(t, nil, "go", append([]string{"list", "-json=Dir,ImportPath,Name,Doc,Standard,GoFiles,Imports,TestImports,XTestImports"}, args...)...)
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// command runs a command at the root and returns what it prints.
func command(t *testing.T, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s %s: %v\n%s%s", strings.Join(env, " "), name, args[0], err, out, stderr.Bytes())
	}
	return out
}
