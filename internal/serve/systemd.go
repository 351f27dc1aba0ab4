package serve

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// The protocol of systemd is small enough to be written here: sd_listen_fds(3) and sd_notify(3).

// firstActivated is the first file of those that systemd passes.
const firstActivated = 3

// activated returns the sockets that systemd listens on for this process, if any. It unsets the
// variables, which are for no child of this process.
func activated(getenv func(string) string, unset func(string)) (listeners []net.Listener, err error) {
	pid, fds := getenv("LISTEN_PID"), getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		unset(name)
	}
	if pid != strconv.Itoa(os.Getpid()) { // another process, which has left them in the environment
		return nil, nil
	}
	n, err := strconv.Atoi(fds)
	if err != nil || n < 1 || n > 64 {
		return nil, configError("LISTEN_FDS is %q: want the number of sockets that are passed", fds)
	}
	for fd := firstActivated; fd < firstActivated+n; fd++ {
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "socket "+strconv.Itoa(fd))
		l, err := net.FileListener(file) // which duplicates it
		if err != nil {
			err = fmt.Errorf("the socket %d of systemd cannot be listened on: %w: want a unit with ListenStream= and without Accept=yes", fd, err)
		}
		_ = file.Close()
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
			return nil, err
		}
		if u, ok := l.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(false) // it is systemd's
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// notify tells systemd the state of this process, if it asks for that. A failure is ignored.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(state))
}
