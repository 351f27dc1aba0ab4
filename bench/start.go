package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// program is a command run from start to end.
type program struct {
	argv func(bin, dir string) []string
}

func (p program) run(ctx context.Context, s scale) (sample, error) {
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	argv := p.argv(s.bin, dir)
	once := func() (time.Duration, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		before := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(before)
		if err != nil {
			return 0, fmt.Errorf("bench: %v: %w\n%s", argv, err, out)
		}
		return took, nil
	}
	if _, err := once(); err != nil { // makes the store and fills the page cache
		return nil, err
	}
	took := make([]float64, s.runs)
	for i := range took {
		d, err := once()
		if err != nil {
			return nil, err
		}
		took[i] = float64(d) / 1e6
	}
	return sample{startToEnd: quantile(took, 0.5)}, nil
}

// helloSource is the smallest Go program that does something.
const helloSource = `package main

import "os"

func main() { os.Stdout.WriteString("hello\n") }
`

// embeddedSource is the command with no other store than its own: what a
// store on a server adds to the start is the difference.
const embeddedSource = `package main

import (
	"github.com/interlock-go/interlock/command"
	_ "github.com/interlock-go/interlock/filelock"
)

func main() { command.Main() }
`

// buildPrograms builds what the start-up row runs, all of it as the command
// is released. It returns the directory of the binaries.
func buildPrograms(ctx context.Context, dir string) (string, error) {
	sources := map[string]string{"interlock": "./cmd/interlock"}
	for name, text := range map[string]string{"hello": helloSource, "embedded": embeddedSource} {
		sources[name] = filepath.Join(dir, name+".go")
		if err := os.WriteFile(sources[name], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	for name, source := range sources {
		// It builds in the module of Interlock, with the versions that users get.
		cmd := exec.CommandContext(ctx, "../.ci/build", filepath.Join(dir, name), source)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("bench: build %s (the bench runs in its own directory): %w\n%s", name, err, out)
		}
	}
	return dir, nil
}
