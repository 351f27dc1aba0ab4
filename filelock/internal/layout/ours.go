//go:build linux || darwin

package layout

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
)

// A store takes nothing for its own by its name alone: what it removes has a name as it makes them and begins as it
// writes them. A directory that holds anything else is somebody's work, and becomes no store.

// checkOurs refuses a directory that holds anything but a store. It changes nothing.
//
// A floor makes it a store, whatever else people have put there since: that is never looked at. Without one it may be a
// store that another process is making at this moment, or one whose maker was killed.
func (st *Store) checkOurs() error {
	if made, err := st.hasFloor(); made || err != nil {
		return err
	}
	entries, err := os.ReadDir(st.Dir)
	if err != nil {
		return fmt.Errorf("filelock: %w", err)
	}
	for _, e := range entries {
		more := e.Name()
		switch path := filepath.Join(st.Dir, e.Name()); path {
		case filepath.Join(st.Dir, floorName):
			continue
		case st.Locks, st.Sessions:
			more, err = st.moreThanMade(path)
		}
		if err != nil {
			return fmt.Errorf("filelock: %w", err)
		}
		if more != "" {
			return fmt.Errorf("filelock: %s has no floor, so it is not a store, or one that was damaged, and it holds %s: want a directory for the store alone, empty or not made yet: %w",
				st.Dir, more, driver.ErrBadData)
		}
	}
	return nil
}

// moreThanMade names what stands in a folder of the store although nobody has ever finished making it.
func (st *Store) moreThanMade(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, unix.ENOTDIR) {
		return filepath.Base(dir), nil
	}
	for _, e := range entries {
		if dir != st.Sessions || !strings.HasPrefix(e.Name(), TestPrefix) || !IsOfSession(dir, e) {
			return filepath.Join(filepath.Base(dir), e.Name()), nil
		}
	}
	return "", err
}

// hasFloor reports whether there is the floor of a store, and not an empty file that is about to become one.
func (st *Store) hasFloor() (bool, error) {
	path := filepath.Join(st.Dir, floorName)
	head, err := headOf(path, len(floorMagic))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, errNoFile):
		return false, notStore(path)
	case err != nil:
		return false, fmt.Errorf("filelock: %w", err)
	case len(head) > 0 && string(head) != floorMagic:
		return false, notStore(path)
	}
	return len(head) > 0, nil
}

func notStore(path string) error {
	return fmt.Errorf("filelock: %s: %w: want a directory for the store alone: %w", path, errNoFloor, driver.ErrBadData)
}

// IsRecord reports whether a file in locks is one that stores make there.
func IsRecord(dir string, e fs.DirEntry) bool {
	if _, ok := HashIn(e.Name()); !ok {
		return false
	}
	return begins(filepath.Join(dir, e.Name()), 0, RecordMagic)
}

// IsOfSession reports whether a file in sessions is one that stores make there: of a session, a draft of one, a roll, a
// socket, or what the self-test leaves when it is killed.
func IsOfSession(dir string, e fs.DirEntry) bool {
	name, isSocket := strings.CutSuffix(strings.TrimPrefix(e.Name(), TestPrefix), SocketSuffix)
	if isSocket != (e.Type() == fs.ModeSocket) {
		return false
	}
	magic := sessionMagic
	if of, isRoll := strings.CutSuffix(name, rollSuffix); isRoll {
		name, magic = of, rollMagic
	}
	if raw, err := hex.DecodeString(strings.TrimSuffix(name, draftSuffix)); err != nil || len(raw) != len(SessionKey{}) {
		return false
	}
	return isSocket || begins(filepath.Join(dir, e.Name()), 16, magic)
}

// begins reports whether a file has magic at an offset, or nothing at all: when a machine crashes, the name of a file may
// have reached the disk and its content not. A file that is not there any more was the store's.
func begins(path string, at int, magic string) bool {
	head, err := headOf(path, PageSize)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return len(bytes.Trim(head, "\x00")) == 0 || len(head) >= at && bytes.HasPrefix(head[at:], []byte(magic))
}

var errNoFile = errors.New("not a regular file")

// headOf returns the first n bytes of a regular file, fewer if it has no more.
func headOf(path string, n int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) { // a symbolic link, a socket
		return nil, errNoFile
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	head := make([]byte, n)
	n, err = io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}
