//go:build linux

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// fenced is a program that writes TEXT into FILE under the token that it is given, and says whether
// that was refused. With AGAIN it waits for a file of that name, and writes once more:
//
//	fenced FILE TEXT [AGAIN]
func fenced() {
	token, err := strconv.ParseUint(os.Getenv("INTERLOCK_FENCE"), 10, 64)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	file := fence.NewFile(os.Args[1], 0o600)
	write := func() {
		switch err := file.Write(context.Background(), token, []byte(os.Args[2])); {
		case err == nil:
			fmt.Println("written")
		case errors.Is(err, fence.ErrStale):
			fmt.Println("refused")
		default:
			fmt.Println(err)
		}
	}
	write()
	if len(os.Args) < 4 {
		return
	}
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(os.Args[3]); err == nil {
			break
		}
	}
	write()
	<-time.NewTimer(time.Hour).C // it is killed before
}

// Everything of a job is frozen past the lease and continued: nothing can keep it from running on
// for a moment, here as long as its guard stays frozen. Who comes next is told that it is still
// there. Its write is refused, and then it is killed.
func TestFreeze(t *testing.T) {
	for ttl := time.Second; !freezes(t, ttl); ttl *= 3 {
		if ttl > guardtest.Patience() {
			t.Fatalf("was not judged: a lease of %v was over before everything was frozen", ttl)
		}
	}
}

// freezes reports whether it could be judged: a machine that is too slow to renew in time ends the
// job before it is frozen.
func freezes(t *testing.T, ttl time.Duration) bool {
	t.Helper()
	dir := t.TempDir()
	data, output := filepath.Join(dir, "data"), filepath.Join(dir, "output")
	again := filepath.Join(dir, "again")
	env := append(os.Environ(), "INTERLOCK_STORE=file:"+filepath.Join(dir, "store"))
	said := func(word string) func() bool {
		return func() bool {
			text, _ := os.ReadFile(output)
			return strings.Contains(string(text), word+"\n")
		}
	}
	out, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	first := exec.Command("interlock", "run", "--ttl", ttl.String(), "job", "--", "fenced", data, "first", again)
	first.Env, first.Stdout = env, out
	var complaint bytes.Buffer
	first.Stderr = &complaint
	first.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = first.Wait()
	}()
	defer func() {
		_ = first.Process.Kill()
		<-ended
	}()
	lost := func() bool {
		select {
		case <-ended:
			return first.ProcessState.ExitCode() == 76
		default:
			return false
		}
	}
	guardtest.Eventually(t, "the first write", func() bool { return lost() || said("written")() })
	guard := guardOf(first.Process.Pid)
	if guard == 0 { // and 0 is the group of this test
		guardtest.Eventually(t, "interlock has lost its lease", lost)
		return false
	}
	_ = syscall.Kill(guard, syscall.SIGSTOP)
	child := guardOf(guard)
	if child == 0 {
		_ = syscall.Kill(guard, syscall.SIGCONT)
		guardtest.Eventually(t, "interlock has lost its lease", lost)
		return false
	}
	all := []int{guard, first.Process.Pid, child}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}

	second := exec.Command("interlock", "run", "job", "--", "fenced", data, "second")
	second.Env = env
	var beside bytes.Buffer
	second.Stderr = &beside
	if text, err := second.Output(); err != nil || string(text) != "written\n" {
		t.Fatalf("the second one: %v, %q", err, text)
	}
	if want := fmt.Sprintf("processes %d %d of ", min(guard, child), max(guard, child)); strings.Count(beside.String(), "\n") != 1 || !strings.Contains(beside.String(), want) {
		t.Errorf("the second one said %q, want only that the first still runs, with %q", beside.String(), want)
	}
	if err := os.WriteFile(again, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(child, syscall.SIGCONT)
	guardtest.Eventually(t, "the late write is refused", said("refused"))
	if text, err := os.ReadFile(data); string(text) != "second" {
		t.Errorf("the file has %q, error %v", text, err)
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	<-ended
	if got := first.ProcessState.ExitCode(); got != 76 {
		t.Errorf("exit status %d, want 76; it said %q", got, complaint.String())
	}
	if err := syscall.Kill(child, 0); err == nil {
		t.Error("the child is alive")
	}
	return true
}
