// Package skew shifts the wall clock of a server's process, and leaves its monotonic clock alone,
// by a library that is loaded before the C library.
package skew

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
var source []byte

// compiled is the library, compiled once a process.
var compiled = sync.OnceValues(func() (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "servertest-shim-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	in, out := filepath.Join(dir, "clock.c"), filepath.Join(dir, library)
	if err := os.WriteFile(in, source, 0o600); err != nil {
		return nil, err
	}
	said, err := exec.Command("gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", out, in).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("servertest: a server's clock needs gcc and the C library's headers (on Debian: apt-get install gcc libc6-dev): %w\n%s", err, said)
	}
	return os.ReadFile(out)
})

// The files in a server's folder.
const (
	library = "clock.so"
	shift   = "clock.offset"
)

// Clock is the wall clock of a server whose files are in Dir. It is not for concurrent use.
type Clock struct {
	Dir    string
	offset time.Duration
}

// Files are the paths of what Env writes.
func (c *Clock) Files() []string {
	return []string{filepath.Join(c.Dir, library), filepath.Join(c.Dir, shift)}
}

// Env writes what shifts the clock into the folder and returns the variables that load it.
func (c *Clock) Env() ([]string, error) {
	so, err := compiled()
	if err != nil {
		return nil, err
	}
	files := c.Files()
	// A new file: the old one may be mapped by a process that is about to end.
	if err := errors.Join(os.RemoveAll(files[0]), os.WriteFile(files[0], so, 0o700), c.write()); err != nil {
		return nil, err
	}
	return []string{"LD_PRELOAD=" + files[0], "SERVERTEST_CLOCK=" + files[1]}, nil
}

// Step moves the clock by d, on top of earlier steps. A process sees it when it next reads its
// clock.
func (c *Clock) Step(d time.Duration) error {
	c.offset += d
	return c.write()
}

// write puts the offset in place without replacing or shortening the file, which a server may have
// mapped.
func (c *Clock) write() error {
	f, err := os.OpenFile(c.Files()[1], os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(c.offset)), 0)
	return errors.Join(err, f.Close())
}
