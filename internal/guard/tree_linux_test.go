package guard

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A process descends from its parent and from what that descends from, and neither from itself nor
// from its child.
func TestDescends(t *testing.T) {
	cmd := exec.Command("sleep", "1007")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	_, above, _ := status(os.Getppid())
	for pid, want := range map[int]bool{os.Getppid(): true, os.Getpid(): false, cmd.Process.Pid: false, 0: false} {
		if got := Descends(pid); got != want {
			t.Errorf("descends from %d: %v, want %v", pid, got, want)
		}
	}
	if above > 0 && !Descends(above) {
		t.Errorf("does not descend from %d, the parent of its parent", above)
	}
}

// A process is signalled only while its parent is the one with which it was seen, or the root that
// orphans go over to. Else its number may be a stranger's by now.
func TestSend_LooksAtTheParentAgain(t *testing.T) {
	self, stranger := os.Getpid(), os.Getppid()
	for _, c := range []struct {
		name         string
		root, parent int
		strange      bool
	}{
		{name: "still its parent's", root: stranger, parent: self},
		{name: "gone over to the root", root: self, parent: stranger},
		{name: "somebody else's", root: -1, parent: stranger, strange: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("sleep", "1006")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			tree := tree{root: c.root}
			err, want := tree.send(process{cmd.Process.Pid, c.parent}, unix.SIGKILL), syscall.SIGKILL
			_ = cmd.Process.Signal(syscall.SIGTERM) // ends what was spared; SIGKILL comes first
			_ = cmd.Wait()
			if c.strange {
				want = syscall.SIGTERM
			}
			if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != want || c.strange != errors.Is(err, unix.ESRCH) {
				t.Errorf("the process ended by %v, want %v; send: %v", got, want, err)
			}
		})
	}
}
