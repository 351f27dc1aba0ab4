//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fence_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fence"
)

// Every way in which a side file can be torn, cut or spoilt: it gives the last token that anybody was told of, or is
// refused. It never gives a smaller one.
func TestFile_SpoiltLedger(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	f := fence.NewFile(path, 0o600)
	side := path + ".fence"
	for _, token := range []uint64{10, 20, 30} {
		if err := f.Claim(ctx, token); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(side)
	if err != nil {
		t.Fatal(err)
	}
	half := len(whole) / 2
	newest := strings.Index(string(whole), "00030 ") / half // the slot of 30; the other holds 20
	for i := range whole {
		spoilt := append([]byte(nil), whole...)
		spoilt[i] ^= 0x15
		if err := os.WriteFile(side, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		// A spoilt newest slot is what a torn write of 30 looks like: 30 was told to nobody, 20 was.
		floor := uint64(30)
		if i/half == newest {
			floor = 20
		}
		if err := f.Claim(ctx, floor-1); !errors.Is(err, fence.ErrStale) {
			t.Errorf("byte %d spoilt: claim of %d got %v, want ErrStale: %d is claimed", i, floor-1, err, floor)
		}
		if err := f.Claim(ctx, floor); err != nil {
			t.Errorf("byte %d spoilt: claim of %d got %v, want it accepted", i, floor, err)
		}
	}
	for name, content := range map[string]string{
		"cut":           string(whole[:len(whole)-1]),
		"longer":        string(whole) + "x",
		"both spoilt":   strings.ReplaceAll(string(whole), " 0", " 1"),
		"newer version": strings.ReplaceAll(string(whole), "fence1", "fence2"),
		"other text":    "hello\n",
	} {
		if err := os.WriteFile(side, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := f.Claim(ctx, fence.Max)
		if err == nil || errors.Is(err, fence.ErrStale) || strings.Contains(err.Error(), "newer version") != (name == "newer version") {
			t.Errorf("%s: %v, want it refused with the reason", name, err)
		}
		if b, err := os.ReadFile(side); err != nil || string(b) != content {
			t.Errorf("%s: the side file was touched", name)
		}
	}
	for name, content := range map[string]string{"empty": "", "never synced": strings.Repeat("\x00", len(whole))} {
		if err := os.WriteFile(side, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.Claim(ctx, 1); err != nil {
			t.Errorf("%s: %v, want a new ledger", name, err)
		}
	}
}

// What a holder that died between its claim and its rename leaves: a token without content and half a temporary file.
// The same holder, started again, writes over it; the next one removes it.
func TestFile_Leftovers(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	f := fence.NewFile(path, 0o600)
	if err := f.Write(ctx, 33, []byte("before")); err != nil {
		t.Fatal(err)
	}
	die := func() {
		t.Helper()
		if err := f.Claim(ctx, 34); err != nil {
			t.Fatal(err)
		}
		half := filepath.Join(filepath.Dir(path), ".doc.fence-34")
		if err := os.WriteFile(half, []byte(strings.Repeat("half ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	die()
	if content, err := f.Read(); string(content) != "before" {
		t.Errorf("content %.20q, %v; want the old one", content, err)
	}
	if err := f.Write(ctx, 34, []byte("after")); err != nil {
		t.Error(err)
	}
	if content, err := f.Read(); string(content) != "after" {
		t.Errorf("content %.20q, %v; want the new one", content, err)
	}
	wantDir(t, path, "doc", "doc.fence")
	die()
	if err := f.Claim(ctx, 35); err != nil {
		t.Error(err)
	}
	wantDir(t, path, "doc", "doc.fence")
}
