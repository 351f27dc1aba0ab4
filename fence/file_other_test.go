//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package fence_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/fence/internal/tabletest"
)

func addFile(*testing.T, map[string]tabletest.Guarded) {}

// Where there is no flock every write is refused with that reason, and a bad token with its own.
func TestFile_Unsupported(t *testing.T) {
	ctx, f := context.Background(), fence.NewFile(filepath.Join(t.TempDir(), "doc"), 0o600)
	if err := f.Write(ctx, 1, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Write: %v, want ErrUnsupported", err)
	}
	if err := f.Claim(ctx, 0); !errors.Is(err, fence.ErrNoToken) {
		t.Errorf("Claim of 0: %v, want ErrNoToken", err)
	}
}
