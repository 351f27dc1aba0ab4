//go:build linux || darwin

package layout

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// hasHeirs reports whether there must be heirs of a session, seen or not: who has the lock of an owner who is dead has
// inherited it.
func (f *SessionFile) hasHeirs() bool { return f.Deserted() && !f.Orphaned() }

// Deserted reports whether the process that opened the session has ended: the socket, which nobody inherits, is there and
// takes no link.
func (f *SessionFile) Deserted() bool {
	path, err := f.Socket()
	if err != nil {
		return false
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}
