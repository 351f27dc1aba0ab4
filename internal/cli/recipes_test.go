//go:build linux

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// recipe returns a block of the page: the first one of a language that has a text in it.
func recipe(t *testing.T, language, has string) string {
	t.Helper()
	for _, b := range page(t, "recipes.md") {
		if b[1] == language && strings.Contains(b[2], has) {
			return b[2]
		}
	}
	t.Fatalf("recipes.md has no block of %s with %q", language, has)
	return ""
}

// workshop is a folder with a job that writes a line each time it runs, ends when there is a file
// done, and says what it has said.
type workshop struct {
	dir, job, runs string
	env            []string
}

func newWorkshop(t *testing.T, env ...string) workshop {
	t.Helper()
	dir := t.TempDir()
	w := workshop{dir: dir, job: filepath.Join(dir, "job"), runs: filepath.Join(dir, "runs"), env: append(os.Environ(), env...)}
	w.write(t, "job", "#!/bin/sh\necho ran >>"+w.runs+"\nuntil test -e "+dir+"/done; do sleep 0.01; done\n")
	return w
}

func (w workshop) write(t *testing.T, name, text string) string {
	t.Helper()
	path, mode := filepath.Join(w.dir, name), os.FileMode(0o600)
	if strings.HasPrefix(text, "#!") {
		mode = 0o700
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// ran returns how often the job has begun.
func (w workshop) ran() int {
	text, _ := os.ReadFile(w.runs)
	return bytes.Count(text, []byte("\n"))
}

// begin starts a program that holds the lock, and waits until its job runs. It is killed at the end
// of the test.
func (w workshop) begin(t *testing.T, program string, args ...string) {
	t.Helper()
	before := w.ran()
	c := exec.Command(program, args...)
	c.Env, c.Dir = w.env, w.dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	})
	guardtest.Eventually(t, "the job runs", func() bool { return w.ran() > before })
}

// end runs a program to its end, and returns what it says and its exit status.
func (w workshop) end(t *testing.T, program string, args ...string) (said string, status int) {
	t.Helper()
	c := exec.Command(program, args...)
	c.Env, c.Dir = w.env, w.dir
	out, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// Of three machines one runs the job of cron, and the others say nothing, also when the job is over
// at once.
func TestRecipe_Cron(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write(t, "store", servertest.Redis(t).URL()+"\n")
	var script []string
	for line := range strings.Lines(recipe(t, "crontab", "report")) {
		if field := strings.Fields(line); len(field) > 6 && field[5] == "app" { // minute to weekday, user, command
			line = strings.Join(field[6:], " ")
		} else if !strings.HasPrefix(line, "#") {
			line = "export " + line
		}
		script = append(script, strings.TrimSpace(line))
	}
	line := strings.NewReplacer("/etc/interlock/store", filepath.Join(w.dir, "store"), "/usr/local/bin/report", w.job).Replace(strings.Join(script, "\n"))
	if !strings.Contains(line, "run --quiet --try --min-hold 1m") {
		t.Fatalf("of the crontab was read\n%s", line)
	}
	w.begin(t, "sh", "-c", line)
	w.write(t, "done", "") // the job is over, the minute is not
	for range 2 {
		if said, status := w.end(t, "sh", "-c", line); status != 75 || said != "" {
			t.Errorf("the next machine ends with %d and says %q, want 75 and nothing", status, said)
		}
	}
	if n := w.ran(); n != 1 {
		t.Errorf("the job ran %d times, want once", n)
	}
}

// The units are such as systemd reads, and their command line does what the page says.
func TestRecipe_Timer(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	interlock, err := exec.LookPath("interlock")
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "store", "file:"+filepath.Join(w.dir, "locks")+"\n")
	at := strings.NewReplacer("/usr/bin/interlock", interlock, "/usr/local/bin/report", w.job, "/etc/interlock/store", filepath.Join(w.dir, "store"))
	service := at.Replace(recipe(t, "ini", "[Service]"))
	timer := w.write(t, "report.timer", at.Replace(recipe(t, "ini", "[Timer]")))
	if said, status := w.end(t, "systemd-analyze", "verify", "--man=no", w.write(t, "report.service", service), timer); status != 0 || said != "" {
		t.Errorf("systemd-analyze verify: status %d\n%s", status, said)
	}

	settings := map[string]string{}
	for line := range strings.Lines(service) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		settings[key] = value
	}
	w.env = append(w.env, settings["Environment"])
	command := strings.Fields(settings["ExecStart"])
	w.begin(t, command[0], command[1:]...)
	if said, status := w.end(t, command[0], command[1:]...); status != 75 || settings["SuccessExitStatus"] != "75" {
		t.Errorf("the next machine ends with %d, want 75, as SuccessExitStatus says; it says %s", status, said)
	}
}

// The script runs once at a time, with its arguments, however it is started: also by a shell, in
// which it has no path.
func TestRecipe_Script(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.env = append(w.env, "INTERLOCK_STORE=file:"+filepath.Join(w.dir, "locks"))
	script := w.write(t, "nightly", recipe(t, "sh", "#!/bin/sh")+"\n"+w.job+"\necho \"$# arguments\"\n")
	w.begin(t, script)
	if said, status := w.end(t, script, "a b", "c"); status != 75 || !strings.Contains(said, `"nightly" is held by`) {
		t.Errorf("beside the first one it ends with %d and says %q", status, said)
	}
	w.write(t, "done", "")
	for _, start := range [][]string{{script}, {"sh", "nightly"}, {"sh", "./nightly"}} {
		guardtest.Eventually(t, "the next one has its turn", func() bool {
			said, status := w.end(t, start[0], append(start[1:len(start):len(start)], "a b", "c")...)
			return status == 0 && strings.Contains(said, "It is my turn, with token ") && strings.Contains(said, "2 arguments")
		})
	}
}

// The entry point of the container, with its command behind it, runs the job under the lock.
func TestRecipe_Docker(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.env = append(w.env, "INTERLOCK_STORE=file:"+filepath.Join(w.dir, "locks"))
	var argv []string
	for line := range strings.Lines(recipe(t, "dockerfile", "ENTRYPOINT")) {
		if verb, list, _ := strings.Cut(line, " "); verb == "ENTRYPOINT" || verb == "CMD" {
			var words []string
			if err := json.Unmarshal([]byte(list), &words); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			argv = append(argv, words...)
		}
	}
	if i := slices.Index(argv, "--"); len(argv) < 3 || i != len(argv)-2 {
		t.Fatalf("the container runs %q", argv)
	}
	argv[len(argv)-1] = w.job
	w.begin(t, argv[0], argv[1:]...)
	if said, status := w.end(t, argv[0], argv[1:]...); status != 75 || !strings.Contains(said, `"report" is held by`) {
		t.Errorf("the second container ends with %d and says %q", status, said)
	}
	if say := recipe(t, "sh", "docker run"); !strings.Contains(say, "INTERLOCK_STORE_FILE=/run/secrets/store") || !strings.Contains(say, ":/run/secrets/store:ro") {
		t.Errorf("the store's file is not where the variable says: %s", say)
	}
}
