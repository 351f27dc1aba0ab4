// Command api prints the exported API of packages as signatures, one a line, sorted, in the manner of the files in Go's own directory api: a
// change of a line is a change that users see. What is said of each is in the packages' documentation.
//
//	go run ./internal/api . ./driver
//
// It reads what the compiler has written of the packages, which go list builds where it is missing, for the platform that GOOS and GOARCH name.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Export string
	DepOnly            bool // it is not asked for
}

// run prints the API of the packages that the patterns match to w.
func run(w io.Writer, patterns []string) error {
	out, err := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export,DepOnly", "--"}, patterns...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("go list: %w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var paths []string
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if exports[p.ImportPath] = p.Export; !p.DepOnly {
			paths = append(paths, p.ImportPath)
		}
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range paths {
		p, err := compiled.Import(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if all := lines(p); len(all) > 0 {
			if _, err := fmt.Fprintf(w, "\n%s\n", strings.Join(all, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}
