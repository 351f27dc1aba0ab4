package repo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sayer is a program that prints the version that it was built with, whatever it is asked.
const sayer = `package main

import (
	"os"
	"runtime/debug"
)

func main() {
	info, _ := debug.ReadBuildInfo()
	os.Stdout.WriteString(info.Main.Version + "\n")
}
`

// repository is one of a small program, with the scripts that build and release ours. The go command's cache is the test's own: what it
// learns of versions here is not what the world knows by their names.
type repository struct {
	*testing.T
	dir string
	env []string
}

func (r repository) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		r.Fatal(err)
	}
}

// run runs a command there, and returns what it says and whether it has ended well.
func (r repository) run(name string, args ...string) (said string, ok bool) {
	r.Helper()
	c := exec.CommandContext(r.Context(), name, args...)
	c.Dir, c.Env = r.dir, append(os.Environ(), r.env...)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err == nil
}

func (r repository) git(args ...string) string {
	r.Helper()
	said, ok := r.run("git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
	if !ok {
		r.Fatalf("git %q: %s", args, said)
	}
	return said
}

// A program says which commit it was built of, by its tag or else its revision, and that the tree was another; and nothing is released under
// a tag that the program does not say.
func TestVersionIsThatOfTheCommit(t *testing.T) {
	t.Parallel()
	r := repository{t, t.TempDir(), []string{"GOFLAGS=-buildvcs=true", "GOWORK=off", "GOMODCACHE=" + t.TempDir()}}
	for _, script := range []string{".ci/build", ".ci/lib.sh", ".ci/release"} {
		r.write(script, read(t, root, script))
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "deploy/copyright", "deploy/systemd/job.service"} {
		r.write(name, "text\n")
	}
	r.write("go.mod", "module example.org/interlock\n\ngo 1.25\n")
	r.write("cmd/interlock/main.go", sayer)
	program := filepath.Join(t.TempDir(), "program")
	says := func() string {
		t.Helper()
		if said, ok := r.run(".ci/build", program, "./cmd/interlock"); !ok {
			t.Fatal(said)
		}
		said, _ := r.run(program)
		return said
	}

	r.git("init", "--quiet")
	r.git("add", ".")
	r.git("commit", "--quiet", "--message=first")
	revision := r.git("rev-parse", "--short=12", "HEAD")
	if v := says(); !strings.HasPrefix(v, "v0.0.0-") || !strings.HasSuffix(v, "-"+revision) {
		t.Errorf("a commit without a tag says %q, want v0.0.0-…-%s", v, revision)
	}
	r.git("tag", "v2.0.0") // which is none of a module whose path does not end with /v2
	if said, ok := r.run(".ci/release"); ok || !strings.Contains(said, "-"+revision+", not v2.0.0 as HEAD is tagged") {
		t.Errorf("a release ends well: %v, and says %q; want none of what is not called v2.0.0", ok, said)
	}
	r.write("README.md", "other text\n")
	if said, ok := r.run(".ci/release"); ok || !strings.Contains(said, "a release is made of what is committed") {
		t.Errorf("a release ends well: %v, and says %q; want none of what is not committed", ok, said)
	}
	r.git("commit", "--quiet", "--all", "--message=second")
	r.git("tag", "v0.1.0")
	if v := says(); v != "v0.1.0" {
		t.Errorf("at the tag v0.1.0 it says %q", v)
	}
	r.write("README.md", "text that is not committed\n")
	if v := says(); v != "v0.1.0+dirty" {
		t.Errorf("beside the tag v0.1.0 it says %q, want v0.1.0+dirty", v)
	}
}
