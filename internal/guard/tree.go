//go:build linux || darwin

package guard

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// process is one of a tree, as it was seen.
type process struct {
	pid, parent int
}

// tree is everything below the process root, without the processes named in spare and what is below
// those.
//
// It is looked up anew each time and is out of date at once: processes fork, end, and go over to
// the subreaper while it is read. So nothing here is done once; who uses it repeats until wait4
// says that no child is left.
type tree struct {
	root   int
	spare  map[int]bool
	denied map[int]bool // SIGKILL was refused: they belong to somebody else
}

// processes lists the tree, parents before their children. A process that goes over to the root
// after the root's children were read and before its parent's were is missed in this list, and is
// in the next.
func (t *tree) processes() []process {
	var found []process
	seen := map[int]bool{t.root: true}
	queue := []int{t.root}
	children := lookUp()
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		for _, pid := range children(parent) {
			if seen[pid] || t.spare[pid] {
				continue
			}
			seen[pid] = true
			found = append(found, process{pid, parent})
			queue = append(queue, pid)
		}
	}
	return found
}

// pids lists the tree's processes that have not ended.
func (t *tree) pids() []int {
	var pids []int
	for _, p := range t.processes() {
		if alive(p.pid) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// signal sends sig to every process of the tree and returns how many took it.
func (t *tree) signal(sig unix.Signal) int {
	n := 0
	for _, p := range t.processes() {
		switch err := t.send(p, sig); {
		case err == nil:
			n++
		case errors.Is(err, unix.EPERM) && sig == unix.SIGKILL:
			t.denied[p.pid] = true
		}
	}
	return n
}

// kill sends SIGKILL to the tree until nothing is left of it. reap collects dead children and
// reports whether none is left, living or dead; changed says that one may have ended; stuck is
// called once with what this user may not kill. kill does not return before those have ended as
// well.
func (t *tree) kill(reap func() (empty bool), changed <-chan os.Signal, stuck func(pids []int)) {
	const shortest, longest = time.Millisecond, 50 * time.Millisecond
	t.denied = map[int]bool{}
	known, pause := 0, shortest
	for !reap() {
		n := t.signal(unix.SIGKILL)
		if n == 0 && len(t.denied) > 0 && stuck != nil {
			stuck(t.pids())
			stuck = nil
		}
		// More than last time: somebody forks, so look again at once. Else wait for the dead.
		if n > known {
			known = n
			continue
		}
		known = n
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
			pause = min(2*pause, longest)
		}
		timer.Stop()
	}
}
