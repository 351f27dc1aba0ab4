package foreigntest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

const module = "github.com/interlock-go/interlock"

// peerlock builds the program with the Go clients and returns its path. It is a command of the module bench, because
// this one must not ask its users for the rivals. Go's own cache makes all but the linking quick; the file has its
// content in its name, so that another process, with another version of it, never changes it under a client that runs.
var peerlock = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("foreigntest: look for the folder of %s: %w", module, err)
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	building, err := os.MkdirTemp(cache, "building-*")
	if err != nil {
		return "", fmt.Errorf("foreigntest: %w", err)
	}
	defer func() { _ = os.RemoveAll(building) }()
	built := filepath.Join(building, "peerlock")
	bench := filepath.Join(string(bytes.TrimSpace(root)), "bench")
	if out, err := exec.Command("go", "build", "-C", bench, "-trimpath", "-buildvcs=false", "-o", built, "./peerlock").CombinedOutput(); err != nil {
		return "", fmt.Errorf("foreigntest: build the Go clients: %w\n%s", err, out)
	}
	content, err := os.ReadFile(built)
	if err != nil {
		return "", fmt.Errorf("foreigntest: %w", err)
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(cache, fmt.Sprintf("peerlock-%x", sum[:8]))
	if err := os.Rename(built, path); err != nil {
		return "", fmt.Errorf("foreigntest: %w", err)
	}
	return path, nil
})
