package servertest

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

//go:embed shim/clock.c
var shimSource []byte

// shim compiles the library that shifts a server's clock, once a process.
var shim = sync.OnceValues(func() (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "servertest-shim-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, shimSource, 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", library, source).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("servertest: a server's clock needs gcc and the C library's headers (on Debian: apt-get install gcc libc6-dev): %w\n%s", err, out)
	}
	return os.ReadFile(library)
})

// preload writes what shifts the clock into the server's folder and returns the variables that load it.
func (s *Server) preload() ([]string, error) {
	library, err := shim()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, "clock.so")
	// A new file: the old one may be mapped by a process that is about to end.
	if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, library, 0o700), s.writeOffset()); err != nil {
		return nil, err
	}
	return []string{"LD_PRELOAD=" + path, "SERVERTEST_CLOCK=" + s.offsetFile()}, nil
}

func (s *Server) offsetFile() string { return filepath.Join(s.dir, "clock.offset") }

// writeOffset puts the offset in place without replacing or shortening the file, which a server may have mapped.
func (s *Server) writeOffset() error {
	f, err := os.OpenFile(s.offsetFile(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(s.offset)), 0)
	return errors.Join(err, f.Close())
}

// Step moves the server's wall clock by d, forward or back, on top of earlier steps, and leaves its monotonic clock alone.
// The server must have been started with Options.Clock; it sees the step the next time it looks at its clock, which for
// a command that arrives from now on is before it is carried out.
func (s *Server) Step(d time.Duration) error {
	if !s.o.Clock {
		return fmt.Errorf("servertest: the server at %s was started without Options.Clock", s.Addr())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset += d
	return s.writeOffset()
}
