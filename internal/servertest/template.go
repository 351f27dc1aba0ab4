package servertest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// template makes the files of a fresh database once a process, with the program that the server brings for it, and keeps them in memory so
// that no folder outlives the process. The folders are added to them.
func template(name, debian string, args func(dir string) []string, folders ...string) func() (map[string][]byte, error) {
	return sync.OnceValues(func() (files map[string][]byte, err error) {
		as, err := ordinary()
		if err != nil {
			return nil, err
		}
		path, err := find(name)
		if err != nil {
			return nil, fmt.Errorf("servertest: %s is needed to run this: install it (on Debian: apt-get install %s): %w", name, debian, err)
		}
		dir, err := os.MkdirTemp("", "servertest-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := as.own(dir); err != nil {
			return nil, err
		}
		cmd := exec.Command(path, args(dir)...)
		cmd.SysProcAttr = attributes(as)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("servertest: %s: %w\n%s", name, err, out)
		}
		files = map[string][]byte{}
		for _, folder := range folders {
			files[folder] = nil
		}
		return files, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil || e.IsDir() {
				files[name] = nil
				return err
			}
			b, err := os.ReadFile(path)
			files[name] = append([]byte{}, b...)
			return err
		})
	})
}

// fill writes the files of a template into the server's folder at its first start, which has not seen the file mark.
func (s *Server) fill(template func() (map[string][]byte, error), mark string) error {
	if _, err := os.Stat(filepath.Join(s.dir, mark)); err == nil {
		return nil
	}
	files, err := template()
	if err != nil {
		return err
	}
	as, err := ordinary()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) { // folders before what is in them
		path := filepath.Join(s.dir, name)
		if content := files[name]; content == nil {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = os.WriteFile(path, content, 0o600)
		}
		if err == nil {
			err = as.own(path)
		}
		if err != nil {
			return fmt.Errorf("servertest: a folder for a database: %w", err)
		}
	}
	return nil
}
