package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Who watches outlives a restart of the store: that it is away is said once, that it is there
// again, too, and what has changed meanwhile is shown, as what changes later.
func TestWatchOutlivesARestart(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	for _, format := range []string{"rows", "json"} {
		dir := t.TempDir()
		file := func(name string) *os.File {
			f, err := os.Create(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return f
		}
		c := exec.Command("interlock", "watch", "--store", server.URL(), "job")
		if format == "json" {
			c.Args = append(c.Args, "--json")
		}
		out, said := file("out"), file("said")
		c.Stdout, c.Stderr = out, said
		has := func(f *os.File, text string) func() bool {
			return func() bool {
				b, err := os.ReadFile(f.Name())
				return err == nil && bytes.Contains(b, []byte(text))
			}
		}
		holds := map[string]string{"rows": "holds", "json": `"state":"holds"`}[format]
		none := map[string]string{"rows": "free", "json": `"claims":[]`}[format]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
		guardtest.Eventually(t, "the line is shown", has(out, none))

		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		guardtest.Eventually(t, "that the store is away is said", has(said, "the store is away: "))
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		guardtest.Eventually(t, "that the store is there again is said", has(said, "the store is there again: "))
		if text, err := exec.Command("interlock", "run", "--store", server.URL(), "job", "--", "sh", "-c", "until grep -q holds "+out.Name()+"; do sleep 0.01; done").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		guardtest.Eventually(t, "who holds is shown", has(out, holds))

		_ = c.Process.Signal(syscall.SIGINT)
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v after Ctrl-C", format, err)
		}
		b, err := os.ReadFile(said.Name())
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "the store is "); n != 2 || !strings.Contains(string(b), server.Addr()) {
			t.Errorf("%s: it says %q, want two lines with the store in them", format, b)
		}
		if format == "json" {
			shown, err := os.ReadFile(out.Name())
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(shown) + string(b)) {
				if !json.Valid([]byte(line)) {
					t.Errorf("no JSON: %q", line)
				}
			}
		}
	}
}
