//go:build linux

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// Whatever a name and a note are, nothing that a person is shown of them turns text around, is
// unseen, or reaches the terminal; and programs get them as they are.
func TestNobodySeesWhatIsNotShown(t *testing.T) {
	t.Parallel()
	const (
		name = "pay\u202etxt.exe\u2066\u200b\ufeff\u3164\u0378"
		note = "a note\u2069\n\x1b[31m\u009b\u061c\u00ad"
	)
	dir := t.TempDir()
	env := append(os.Environ(), "INTERLOCK_STORE=file:"+filepath.Join(dir, "store"))
	interlock := func(args ...string) *exec.Cmd {
		c := exec.Command("interlock", args...)
		c.Env, c.Dir = env, dir
		return c
	}
	outputs := map[string]string{}
	shows := func(wants string, args ...string) {
		t.Helper()
		out, _ := interlock(args...).CombinedOutput()
		key := strings.Join(args, " ")
		outputs[key] = string(out)
		if !strings.Contains(string(out), wants) {
			t.Errorf("%+q says %q, want %q in it", key, out, wants)
		}
	}
	begin := func(log string, args ...string) *exec.Cmd {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, log))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c := interlock(args...)
		c.Stdout, c.Stderr = f, f
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
		return c
	}
	said := func(log, text string) func() bool {
		return func() bool {
			b, _ := os.ReadFile(filepath.Join(dir, log))
			outputs[log] = string(b)
			return bytes.Contains(b, []byte(text))
		}
	}

	watch := begin("watch", "watch", "-o", "wide", name)
	begin("holder", "run", "--note", note, name, "--", "sh", "-c", "until test -e done; do sleep 0.01; done; sleep 1000 & exit")
	guardtest.Eventually(t, "the watcher sees the holder", said("watch", "holds"))
	const escaped = `pay\u202etxt.exe\u2066\u200b\ufeff\u3164\u0378`
	shows(`\u202e`, "ls")
	shows(escaped, "ls", "-o", "wide")
	shows(escaped+" in file:", "show", name)
	shows(escaped, "run", "--try", name, "--", "true")
	shows(escaped, "elect", name)
	shows("to break it", "break", name)
	shows("no claim x\\u202e", "break", name, "x\u202e", "1")
	shows("", "complete", "--", "show", "p")
	begin("waiter", "run", name, "--", "true")
	guardtest.Eventually(t, "the waiter says for whom it waits", said("waiter", "waiting: "))
	if err := os.WriteFile(filepath.Join(dir, "done"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	guardtest.Eventually(t, "the holder says what goes on", said("holder", "has ended"))
	shows(escaped+": broke ", "break", "--yes", name)
	guardtest.Eventually(t, "the holder says that it has lost", said("holder", "broken by an operator"))
	shows("want SCHEME", "show", "--store", "nosuch\u202e:x", name)
	shows("unknown flag", "ls", "--no\u202e")
	shows("no\\u202e", "ls", "--store", "file:"+dir+"/no\u202e/store")
	_ = watch.Process.Signal(syscall.SIGINT)
	_ = watch.Wait()
	said("watch", "")()

	for key, out := range outputs {
		for _, r := range out {
			if r != '\n' && !strconv.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
				t.Errorf("%+q shows %+q in %+q", key, r, out)
				break
			}
		}
	}

	begin("again", "run", "--note", note, "again "+name, "--", "sleep", "1000")
	var all []struct {
		Name   string `json:"name"`
		Claims []struct {
			Note string `json:"note"`
		} `json:"claims"`
	}
	guardtest.Eventually(t, "another name is held", func() bool {
		out, err := interlock("ls", "--json", "again").Output()
		if err != nil || json.Unmarshal(out, &all) != nil {
			t.Fatalf("ls --json: %v: %s", err, out)
		}
		return len(all) == 1
	})
	if all[0].Name != "again "+name || all[0].Claims[0].Note != note {
		t.Errorf("in JSON it is %+q with the note %+q, want it as it is", all[0].Name, all[0].Claims[0].Note)
	}
}
