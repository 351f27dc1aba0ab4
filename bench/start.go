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

// buildPrograms builds what the start-up row runs, as a user would: with the
// default flags. It returns the directory of the binaries.
func buildPrograms(ctx context.Context, dir string) (string, error) {
	hello := filepath.Join(dir, "hello.go")
	if err := os.WriteFile(hello, []byte(helloSource), 0o600); err != nil {
		return "", err
	}
	for name, build := range map[string]struct{ module, source string }{
		"hello":     {".", hello},
		"interlock": {"..", "./cmd/interlock"}, // in its own module, with the versions that users get
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name), build.source)
		cmd.Dir = build.module
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("bench: build %s (the bench runs in its own directory): %w\n%s", name, err, out)
		}
	}
	return dir, nil
}
