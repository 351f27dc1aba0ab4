package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// pingPong is the floor between processes: two of them throw one byte to and
// fro over a Unix socket, and who has the byte has the lock. No handover that
// wakes another process by a socket can be faster.
type pingPong struct {
	conn  net.Conn
	first chan struct{} // full until process 1 has taken its first turn
	buf   [1]byte
}

func openPingPong(_ context.Context, p place) (locker, error) {
	conn, err := net.FileConn(p.fd)
	if err != nil {
		return nil, err
	}
	p.fd.Close()
	pp := &pingPong{conn: conn, first: make(chan struct{}, 1)}
	if p.Process == 1 {
		pp.first <- struct{}{}
	}
	return pp, nil
}

func (pp *pingPong) mutex(string) mutex { return pp }

func (pp *pingPong) lock(context.Context) (func() error, error) {
	select {
	case <-pp.first:
		return pp.unlock, nil
	default:
	}
	if _, err := pp.conn.Read(pp.buf[:]); err != nil {
		return nil, ended(err)
	}
	return pp.unlock, nil
}

func (pp *pingPong) unlock() error {
	if _, err := pp.conn.Write(pp.buf[:]); err != nil && !errors.Is(ended(err), errOver) {
		return err
	}
	return nil
}

func (pp *pingPong) close() error { return pp.conn.Close() }

// ended turns what a socket says when the other side has closed into errOver.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ECONNREFUSED) {
		return errOver
	}
	return err
}

func streamPairs(n int) ([]*os.File, error)   { return socketPairs(n, unix.SOCK_STREAM) }
func datagramPairs(n int) ([]*os.File, error) { return socketPairs(n, unix.SOCK_DGRAM) }

// socketPairs makes the ends for two workers.
func socketPairs(n, kind int) ([]*os.File, error) {
	if n != 2 {
		return nil, fmt.Errorf("bench: ping-pong is played by 2 processes, not %d", n)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("bench: socketpair: %w", err)
	}
	return []*os.File{os.NewFile(uintptr(fds[0]), "ping"), os.NewFile(uintptr(fds[1]), "pong")}, nil
}

// eof is the floor of noticing a death: process 1 holds from the start, and
// process 2 has the lock when the socket between them says that process 1 is
// gone.
type eof struct {
	conn  net.Conn
	first bool
}

func openEOF(_ context.Context, p place) (locker, error) {
	conn, err := net.FileConn(p.fd)
	if err != nil {
		return nil, err
	}
	p.fd.Close()
	return &eof{conn: conn, first: p.Process == 1}, nil
}

func (e *eof) mutex(string) mutex { return e }

func (e *eof) lock(context.Context) (func() error, error) {
	if !e.first {
		var buf [1]byte
		if _, err := e.conn.Read(buf[:]); !errors.Is(ended(err), errOver) {
			return nil, fmt.Errorf("bench: the holder spoke instead of dying: %w", err)
		}
	}
	return func() error { return nil }, nil
}

func (e *eof) close() error { return e.conn.Close() }
