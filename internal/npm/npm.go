// Package npm installs packages of JavaScript that tests use: those that a lock file names, once for all processes of a user.
package npm

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Install returns the folder node_modules with the packages that a package.json and its lock name, below the folder cache, which
// must exist. Only the first call for them needs the package registry. It may be called concurrently, also by several processes.
func Install(cache string, manifest, lock []byte) (modules string, err error) {
	sum := sha256.Sum256(slices.Concat(manifest, lock))
	packages := filepath.Join(cache, fmt.Sprintf("npm-%x", sum[:8]))
	modules = filepath.Join(packages, "node_modules")
	if _, err := os.Stat(packages); err == nil {
		return modules, nil
	}
	// The folder is made under another name and renamed when it is complete. Of several processes that do so at once one wins the
	// rename; the others throw theirs away and use that one, which has the same content.
	building, err := os.MkdirTemp(cache, "building-*")
	if err != nil {
		return "", fmt.Errorf("npm: %w", err)
	}
	defer func() { _ = os.RemoveAll(building) }() // it is gone if it was renamed
	for name, text := range map[string][]byte{"package.json": manifest, "package-lock.json": lock} {
		if err := os.WriteFile(filepath.Join(building, name), text, 0o600); err != nil {
			return "", fmt.Errorf("npm: %w", err)
		}
	}
	program, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("npm: %w: install the Debian package npm", err)
	}
	ci := exec.Command(program, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	ci.Dir = building
	if out, err := ci.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm: npm ci, which needs the package registry once: %w\n%s", err, out)
	}
	if err := os.Rename(building, packages); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("npm: %w", err)
	}
	return modules, nil
}
