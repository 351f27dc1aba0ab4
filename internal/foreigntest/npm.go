package foreigntest

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

var (
	//go:embed clients/package.json
	npmPackage []byte
	//go:embed clients/package-lock.json
	npmLock []byte
)

// nodejs is the program node, and the folder of the packages that clients/package-lock.json names.
type nodejs struct{ program, modules string }

var node = sync.OnceValues(findNode)

func findNode() (nodejs, error) {
	program, err := exec.LookPath("node")
	if err != nil {
		return nodejs{}, fmt.Errorf("foreigntest: %w: install Node.js 18 or newer and npm, the Debian packages nodejs and npm", err)
	}
	cache, err := cacheFolder()
	if err != nil {
		return nodejs{}, err
	}
	sum := sha256.Sum256(append(append([]byte{}, npmPackage...), npmLock...))
	packages := filepath.Join(cache, fmt.Sprintf("npm-%x", sum[:8]))
	if err := installPackages(cache, packages); err != nil {
		return nodejs{}, err
	}
	return nodejs{program: program, modules: filepath.Join(packages, "node_modules")}, nil
}

// installPackages makes the folder with the packages in it, unless it is there. The folder is made under another name
// and renamed when it is complete. Of several processes that do so at once one wins the rename; the others throw theirs
// away and use that one, which has the same content.
func installPackages(cache, packages string) error {
	if _, err := os.Stat(packages); err == nil {
		return nil
	}
	building, err := os.MkdirTemp(cache, "building-*")
	if err != nil {
		return fmt.Errorf("foreigntest: %w", err)
	}
	defer func() { _ = os.RemoveAll(building) }() // it is gone if it was renamed
	for name, text := range map[string][]byte{"package.json": npmPackage, "package-lock.json": npmLock} {
		if err := os.WriteFile(filepath.Join(building, name), text, 0o600); err != nil {
			return fmt.Errorf("foreigntest: %w", err)
		}
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("foreigntest: %w: install the Debian package npm", err)
	}
	ci := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	ci.Dir = building
	if out, err := ci.CombinedOutput(); err != nil {
		return fmt.Errorf("foreigntest: npm ci, which needs the package registry once: %w\n%s", err, out)
	}
	if err := os.Rename(building, packages); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("foreigntest: %w", err)
	}
	return nil
}

// cacheFolder returns the folder for what is fetched or built once for all tests of this user.
func cacheFolder() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("foreigntest: no folder for the packages of npm: %w", err)
	}
	cache := filepath.Join(user, "interlock-foreign")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("foreigntest: %w", err)
	}
	return cache, nil
}
