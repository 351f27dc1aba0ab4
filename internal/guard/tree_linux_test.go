package guard

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A process is signalled only while its parent is the one with which it was seen, or the root that orphans go over to. Else
// its number may be a stranger's by now.
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
