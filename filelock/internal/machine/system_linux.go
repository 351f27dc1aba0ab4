package machine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// BootClock reads the clock that time-to-live is measured with, in nanoseconds: it counts suspended time, is the same
// in all processes of the machine, and is never set.
func BootClock() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(fmt.Sprintf("filelock: CLOCK_BOOTTIME: %v", err)) // since Linux 2.6.39
	}
	return ts.Nano()
}

// bootID identifies this boot of the machine. A container shares it with its host.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("filelock: the boot id of this machine is needed, is /proc mounted? %w", err)
	}
	return string(bytes.TrimSpace(b)), nil
}

// CheckClock refuses a process whose boot-time clock differs from that of other processes of the machine.
func CheckClock() error {
	b, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return nil //nolint:nilerr // a kernel without time namespaces
	}
	return checkOffsets(string(b))
}

// checkOffsets refuses the offsets of a time namespace, as the kernel writes them, if the boot-time clock has one.
func checkOffsets(text string) error {
	for l := range strings.Lines(text) {
		f := strings.Fields(l)
		if len(f) == 3 && (f[0] == "boottime" || f[0] == "7") && (f[1] != "0" || f[2] != "0") {
			return fmt.Errorf("filelock: this process is in a time namespace, its boot-time clock is %s s off the machine's: want a process outside, or a store on a server", f[1])
		}
	}
	return nil
}

// Magic numbers of file systems where flock or Unix sockets end at the machine, or are somebody's program.
var remote = map[int64]string{
	unix.NFS_SUPER_MAGIC:  "NFS",
	unix.SMB_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.SMB2_SUPER_MAGIC: "SMB2",
	unix.FUSE_SUPER_MAGIC: "FUSE",
	unix.V9FS_MAGIC:       "9p",
	unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.AFS_SUPER_MAGIC:  "AFS",
	unix.AFS_FS_MAGIC:     "AFS",
	unix.CODA_SUPER_MAGIC: "Coda",
	0x0BD00BD0:            "Lustre",
	0x47504653:            "GPFS",
	0x7461636f:            "OCFS2",
	0x01161970:            "GFS2",
	0x19830326:            "BeeGFS",
}

// remoteFS returns the name of the file system of fd if it is one that cannot carry the store, else "".
func remoteFS(fd int) (string, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return "", err
	}
	return remote[int64(uint32(st.Type))], nil
}

// InMemory reports whether a folder is on a file system that is gone after a reboot.
func InMemory(dir string) bool {
	const ramfs = 0x858458f6
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	magic := int64(uint32(st.Type))
	return magic == unix.TMPFS_MAGIC || magic == ramfs
}

// SocketPath returns a path by which the socket name in the open directory dir can be bound and connected to. The address
// of a Unix socket has room for 108 bytes, so a longer path goes through the descriptor of the directory.
func SocketPath(dir *os.File, name string) (string, error) {
	if path := dir.Name() + "/" + name; len(path) < maxSocketPath {
		return path, nil
	}
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name, nil
}

// maxSocketPath is the room in the address of a Unix socket, with the zero at its end.
const maxSocketPath = 108

// Nap sleeps for less than the millisecond that Go's timers round up to.
func Nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}

// NoAccessTime keeps reads from writing: the time of the last access would be stored after each change of a record.
const NoAccessTime = unix.O_NOATIME

// Links returns how many names a file has. It asks for nothing else, because a file whose times were asked for gets
// finer ones at the next write, which cost more than the write.
func Links(fd int) (uint32, error) {
	var st unix.Statx_t
	for {
		err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_NLINK, &st)
		if err == unix.EINTR {
			continue
		}
		return st.Nlink, err
	}
}

// LockOwner says who has the flock on the file of inode, for people: nobody can be asked but /proc.
func LockOwner(inode uint64) string {
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(b)) {
		f := strings.Fields(l)
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], ":"+strconv.FormatUint(inode, 10)) {
			continue
		}
		state := ""
		if stat, err := os.ReadFile("/proc/" + f[4] + "/stat"); err == nil {
			if _, rest, ok := bytes.Cut(stat, []byte(") ")); ok && len(rest) > 0 && (rest[0] == 'T' || rest[0] == 't') {
				state = ", which is stopped: kill -CONT " + f[4] + " or kill -KILL " + f[4]
			}
		}
		return "process " + f[4] + state
	}
	return ""
}
