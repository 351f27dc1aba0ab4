//go:build linux

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// L14: the process that renews is not the one that works. When the worker is dead, however it died,
// the renewals end with it, and the next one gets in long before the lease is over.
func TestL14_NobodyRenewsForTheDead(t *testing.T) {
	for _, c := range []struct {
		name string
		dies func(interlock, worker int)
	}{
		{"the worker is killed", func(_, worker int) { _ = syscall.Kill(worker, syscall.SIGKILL) }},
		{"its guard is killed", func(interlock, _ int) { _ = syscall.Kill(guardOf(interlock), syscall.SIGKILL) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "pid")
			env := append(os.Environ(), "INTERLOCK_STORE=file:"+filepath.Join(dir, "store"), "PID="+file)
			first := exec.Command("interlock", "run", "--ttl", "10m", "job", "--", "sh", "-c", "echo $$ >$PID; exec sleep 1000")
			first.Env = env
			first.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = first.Process.Kill()
				_ = first.Wait()
			}()
			worker := 0
			guardtest.Eventually(t, "the worker runs", func() bool {
				text, _ := os.ReadFile(file)
				worker, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				return worker != 0
			})
			c.dies(first.Process.Pid, worker)

			next := exec.Command("interlock", "run", "--wait", guardtest.Patience().String(), "job", "--", "true")
			next.Env = env
			if out, err := next.CombinedOutput(); err != nil {
				t.Errorf("the worker is dead, and the lock is renewed for it: %v: %s", err, out)
			}
			if err := syscall.Kill(worker, 0); err == nil {
				t.Error("the worker is alive")
			}
		})
	}
}
