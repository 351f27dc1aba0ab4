//go:build linux || darwin

package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// link is one end of the socketpair. A message is its length in four bytes and its fields;
// descriptors travel with the first byte of their message. One goroutine receives; any number send.
type link struct {
	file *os.File
	raw  syscall.RawConn

	sending sync.Mutex

	space []byte // to receive into
	buf   []byte // received, not yet read
	files []int  // received, not yet asked for
}

const (
	longest     = 64 << 20 // of a message: arguments and environment together are at most a few MB
	sendTimeout = time.Second
)

// newLink takes over the descriptor fd.
func newLink(fd int) (*link, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("guard: descriptor %d: %w", fd, err)
	}
	f := os.NewFile(uintptr(fd), "guard")
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("guard: descriptor %d: %w", fd, err)
	}
	return &link{file: f, raw: raw}, nil
}

// send sends m. A peer that is stopped while the socket is full is given a second; then nothing
// more is sent, because half a message cannot be taken back, and it takes this side for dead. That
// errs on the safe side. What a dead peer has sent before can still be received.
func (l *link) send(m message, files ...int) error {
	data := m.encode(make([]byte, 4, 256))
	binary.BigEndian.PutUint32(data, uint32(len(data)-4))
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}

	l.sending.Lock()
	defer l.sending.Unlock()
	_ = l.file.SetWriteDeadline(time.Now().Add(sendTimeout))
	for len(data) > 0 {
		var n int
		var errno error
		err := l.raw.Write(func(fd uintptr) bool {
			for errno = unix.EINTR; errno == unix.EINTR; {
				n, errno = unix.SendmsgN(int(fd), data, rights, nil, sendFlags)
			}
			return errno != unix.EAGAIN
		})
		if err = errors.Join(err, errno); err != nil {
			l.endSending()
			return fmt.Errorf("guard: send %s: %w", m.Op, err)
		}
		data, rights = data[n:], nil
	}
	return nil
}

// receive returns the next message, and io.EOF when the other side is dead.
func (l *link) receive() (message, error) {
	for {
		if len(l.buf) >= 4 {
			n := int(binary.BigEndian.Uint32(l.buf))
			if n > longest {
				return message{}, fmt.Errorf("guard: a message of %d bytes", n)
			}
			if len(l.buf) >= 4+n {
				var m message
				err := m.decode(l.buf[4 : 4+n])
				l.buf = l.buf[4+n:]
				return m, err
			}
		}
		if err := l.fill(); err != nil {
			return message{}, err
		}
	}
}

func (l *link) fill() error {
	if l.space == nil {
		l.space = make([]byte, 64<<10)
	}
	oob := make([]byte, unix.CmsgSpace(4*253))
	var n, oobn int
	var errno error
	err := l.raw.Read(func(fd uintptr) bool {
		for errno = unix.EINTR; errno == unix.EINTR; {
			n, oobn, _, _, errno = unix.Recvmsg(int(fd), l.space, oob, receiveFlags)
		}
		return errno != unix.EAGAIN
	})
	if err = errors.Join(err, errno); err != nil {
		return err
	}
	controls, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return err
	}
	for i := range controls {
		fds, err := unix.ParseUnixRights(&controls[i])
		if err != nil {
			return err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
		}
		l.files = append(l.files, fds...)
	}
	if n == 0 {
		return io.EOF
	}
	l.buf = append(l.buf, l.space[:n]...)
	return nil
}

// take returns the n descriptors that came with the last message.
func (l *link) take(n int) ([]int, error) {
	if len(l.files) < n {
		return nil, fmt.Errorf("guard: %d descriptors came, %d were announced", len(l.files), n)
	}
	fds := l.files[:n]
	l.files = l.files[n:]
	return fds, nil
}

func (l *link) close() { _ = l.file.Close() }

// endSending ends this side's half: the other reads to the end, and may still answer.
func (l *link) endSending() {
	_ = l.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
}
