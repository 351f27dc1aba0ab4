package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Heirs lists the processes that have a session's lock because they inherited it. It reports false if there are none: only
// the owner has the lock, who was stopped past his time, or this process is an heir itself, and so no stranger to them.
// It reports true without a process if there must be some that cannot be seen: another user's, or in another container.
func (f *SessionFile) Heirs() (pids []int, some bool) {
	self := strconv.Itoa(os.Getpid())
	if own, err := os.Readlink("/proc/self"); err != nil || own != self {
		return nil, f.hasHeirs() // the numbers there are those of another pid namespace
	}
	for _, name := range namesIn("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if locked, rolled := f.partOf(pid); !locked || rolled {
			continue
		}
		if name == self {
			return nil, false
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, len(pids) > 0 || f.hasHeirs()
}

// partOf reports whether a process has the session's lock, and whether it has its roll open, as the owner alone has.
//
// Whoever waits behind a session has its file open, too. But fdinfo shows a lock only with the one open file that it
// belongs to, and that is the owner's and his heirs'.
func (f *SessionFile) partOf(pid int) (locked, rolled bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	key := f.key.String()
	for _, fd := range namesIn(dir + "/fd") {
		link, err := os.Readlink(dir + "/fd/" + fd) // asks no file system, which could be one that hangs
		if err != nil {
			continue
		}
		switch strings.TrimSuffix(filepath.Base(link), " (deleted)") {
		case key + rollSuffix:
			rolled = true
		case key, key + draftSuffix: // it was opened as a draft
			locked = locked || f.lockedBy(dir+"/fdinfo/"+fd)
		}
	}
	return locked, rolled
}

// lockedBy reports whether an open file, by its fdinfo, is the one that has the session's lock:
//
//	lock:	1: FLOCK  ADVISORY  WRITE 14797 fe:00:10020893 0 EOF
func (f *SessionFile) lockedBy(fdinfo string) bool {
	info, err := f.File.Stat()
	if err != nil {
		return false
	}
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	inode := ":" + strconv.FormatUint(info.Sys().(*syscall.Stat_t).Ino, 10)
	for l := range strings.Lines(string(text)) {
		w := strings.Fields(l)
		if len(w) > 6 && w[0] == "lock:" && w[2] == "FLOCK" && w[4] == "WRITE" && strings.HasSuffix(w[6], inode) {
			return true
		}
	}
	return false
}

// SignalHeirs sends sig to all heirs.
func (f *SessionFile) SignalHeirs(sig os.Signal) (failed error) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("filelock: signal %v: want one of this system", sig)
	}
	pids, _ := f.Heirs()
	for _, pid := range pids {
		if err := f.SignalHeir(pid, number); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = errors.Join(failed, fmt.Errorf("filelock: signal process %d: %w", pid, err))
		}
	}
	return failed
}

// SignalHeir sends a signal to an heir, and to no process that took over its number: it is pinned by a pidfd first, and
// then asked for the lock again. Where there is no pidfd (before Linux 5.3) nobody gets a signal.
func (f *SessionFile) SignalHeir(pid int, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if locked, rolled := f.partOf(pid); !locked || rolled {
		return nil
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// namesIn lists a folder of /proc, as far as it can be read.
func namesIn(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil // the process has ended, or is another user's
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return names
}
