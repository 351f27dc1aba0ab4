//go:build linux

package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The README's first command by a user who is as new as useradd -m makes one: without ~/.local.
// Only root can make users; the folders alone are made in TestMakeAbove for everybody.
func TestNewcomer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: no user can be made")
		return
	}
	name := "interlock" + strconv.Itoa(os.Getpid())
	if out, err := exec.Command("useradd", "-m", name).CombinedOutput(); err != nil {
		t.Fatalf("useradd: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("userdel", "-r", name).CombinedOutput(); err != nil {
			t.Errorf("userdel: %v: %s", err, out)
		}
	})
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(u.HomeDir, ".local")); err == nil {
		t.Fatalf("%s has a .local: not as new as it should be", u.HomeDir)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)

	interlock := filepath.Join(u.HomeDir, "interlock") // the test's own is in a folder that is root's alone
	copyProgram(t, interlock)
	c := exec.Command(interlock, "run", "hello", "--", "echo", "I hold the lock")
	c.Dir = u.HomeDir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.HomeDir}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	if out, err := c.CombinedOutput(); err != nil || string(out) != "I hold the lock\n" {
		t.Errorf("%v: %q", err, out)
	}
	for _, folder := range []string{".local", ".local/state", ".local/state/interlock"} {
		info, err := os.Stat(filepath.Join(u.HomeDir, folder))
		if err != nil {
			t.Fatal(err)
		}
		if owner := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid); owner != u.Uid || info.Mode().Perm() != 0o700 {
			t.Errorf("%s belongs to user %s and has mode %v, want %s and 0700", folder, owner, info.Mode(), u.Uid)
		}
	}
}

// copyProgram copies this program, for everybody to execute.
func copyProgram(t *testing.T, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}

// A folder that was named is not made: it may be misspelt.
func TestNewcomer_WhatWasNamedIsNotMade(t *testing.T) {
	c := exec.Command("interlock", "run", "--store", "file:"+filepath.Join(t.TempDir(), "no", "such", "store"), "hello", "--", "true")
	out, err := c.CombinedOutput()
	if err == nil || c.ProcessState.ExitCode() != 69 || !strings.Contains(string(out), "want a directory in one that exists") {
		t.Errorf("a store in a folder that was named and is not there: %v: %s", err, out)
	}
}
