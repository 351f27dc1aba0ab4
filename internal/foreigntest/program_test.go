package foreigntest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/npm"
)

// Whoever lacks something is told what to install.
func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := findPython("redis.lock", "redis", "python3"); err == nil || !strings.Contains(err.Error(), "python3-redis") {
		t.Errorf("without Python: %v", err)
	}
	if _, err := findNode(); err == nil || !strings.Contains(err.Error(), "install Node.js") {
		t.Errorf("without Node.js: %v", err)
	}
	if _, err := curator(t.TempDir()); err == nil || !strings.Contains(err.Error(), "libcurator-recipes-java") {
		t.Errorf("without Curator: %v", err)
	}
	cache := t.TempDir()
	if _, err := npm.Install(cache, npmPackage, npmLock); err == nil || !strings.Contains(err.Error(), "package npm") {
		t.Errorf("without npm: %v", err)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
		t.Errorf("an installation that failed left %v (%v)", left, err)
	}
}

// Processes that install at once all find the packages, and leave one copy.
func TestInstallAtOnce(t *testing.T) {
	cache := t.TempDir()
	done := make(chan error)
	for range 2 {
		go func() {
			modules, err := npm.Install(cache, npmPackage, npmLock)
			for _, name := range []string{"ioredis", "redis-semaphore", "redlock", "redlock5"} {
				if err == nil {
					_, err = os.Stat(filepath.Join(modules, name, "package.json"))
				}
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) != 1 {
		t.Errorf("in the cache are %v (%v), want the packages alone", left, err)
	}
}

func TestUnknownKind(t *testing.T) {
	if _, err := program(t, "zookeeper"); err == nil || !strings.Contains(err.Error(), `"zookeeper"`) {
		t.Errorf("a client that is not there: %v", err)
	}
}
