package servertest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/internal/servertest/internal/process"
)

// template makes the files of a fresh database once a process, with the program that the server
// brings for it. It keeps them in memory, so that no folder outlives the process. The folders are
// added to them.
func template(name, debian string, args func(dir string) []string, folders ...string) func() (map[string][]byte, error) {
	return sync.OnceValues(func() (files map[string][]byte, err error) {
		as, err := process.Unprivileged()
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp("", "servertest-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := as.Own(dir); err != nil {
			return nil, err
		}
		if err := process.Run(context.Background(), as, name, debian, args(dir)...); err != nil {
			return nil, err
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

// fill writes the files of a template into a server's folder at its first start, which is known by
// the file mark: the folder does not have it yet.
func fill(dir string, template func() (map[string][]byte, error), mark string) error {
	if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
		return nil
	}
	files, err := template()
	if err != nil {
		return err
	}
	as, err := process.Unprivileged()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) { // folders before what is in them
		path := filepath.Join(dir, name)
		if content := files[name]; content == nil {
			err = os.MkdirAll(path, 0o700)
		} else {
			err = os.WriteFile(path, content, 0o600)
		}
		if err == nil {
			err = as.Own(path)
		}
		if err != nil {
			return fmt.Errorf("servertest: a folder for a database: %w", err)
		}
	}
	return nil
}
