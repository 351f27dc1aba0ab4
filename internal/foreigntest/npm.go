package foreigntest

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/interlock-go/interlock/internal/npm"
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
	modules, err := npm.Install(cache, npmPackage, npmLock)
	if err != nil {
		return nodejs{}, err
	}
	return nodejs{program: program, modules: modules}, nil
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
