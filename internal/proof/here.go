//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
)

// here is where a proof runs: what is proved, and on what.
type here struct {
	commit  string // with a + if the sources differ from it
	machine string
}

// commitOf is what a part was proved at that began here and ended now. Where sources changed meanwhile nobody can say which
// they were.
func (h here) commitOf(now here) string {
	if h.commit != now.commit {
		return strings.TrimSuffix(h.commit, "+") + "+"
	}
	return h.commit
}

// sources are what a proof is about: all but its page.
var sources = []string{"--", ".", ":(exclude)" + pageFile}

func git(ctx context.Context, args ...string) (string, error) {
	// A clone that belongs to another user is read all the same.
	c := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

func present(ctx context.Context) (here, error) {
	commit, err := git(ctx, "rev-parse", "--short=9", "HEAD")
	if err != nil {
		return here{}, fmt.Errorf("which commit this is: %w", err)
	}
	changes, err := git(ctx, append([]string{"status", "--porcelain", "--untracked-files=normal"}, sources...)...)
	if err != nil {
		return here{}, fmt.Errorf("what is not committed: %w", err)
	}
	if changes != "" {
		commit += "+"
	}
	return here{commit: commit, machine: machine()}, nil
}

// sameSources reports whether nothing has changed since a commit.
func (h here) sameSources(ctx context.Context, since string) bool {
	if strings.HasSuffix(h.commit, "+") || strings.HasSuffix(since, "+") || since == "" {
		return false
	}
	_, err := git(ctx, append([]string{"diff", "--quiet", since, "HEAD"}, sources...)...)
	return err == nil
}

var (
	processor = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)
	memory    = regexp.MustCompile(`(?m)^MemTotal:\s*(\d+) kB$`)
)

// machine says in a few words what this one is: "2 cores, AMD EPYC, 24 GiB, linux/amd64".
func machine() string {
	s := fmt.Sprintf("%d cores", runtime.NumCPU())
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := processor.FindSubmatch(text); m != nil {
			s += ", " + strings.ReplaceAll(strings.TrimSpace(string(m[1])), "|", "/")
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int
		if m := memory.FindSubmatch(text); m != nil {
			if _, err := fmt.Sscan(string(m[1]), &kb); err == nil {
				s += fmt.Sprintf(", %d GiB", (kb+1<<19)>>20)
			}
		}
	}
	return s + ", " + runtime.GOOS + "/" + runtime.GOARCH
}
