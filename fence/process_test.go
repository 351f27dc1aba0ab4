//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fence_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fence"
)

// Run as a worker, the test binary does to the file in FENCE_WORKER what its standard input says, a line each:
//
//	update TOKEN    increments the number, answers ok, stale or the error
//	pause TOKEN     the same, and stops itself with SIGSTOP between reading and writing
//	fill TOKEN      writes a page of the token over and over until it dies, answering ok after each
func TestMain(m *testing.M) {
	path := os.Getenv("FENCE_WORKER")
	if path == "" {
		os.Exit(m.Run())
	}
	ctx, f, in := context.Background(), fence.NewFile(path, 0o600), bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var verb string
		var token uint64
		if _, err := fmt.Sscan(in.Text(), &verb, &token); err != nil {
			fmt.Println(err)
			continue
		}
		answer := func(err error) {
			switch {
			case err == nil:
				fmt.Println("ok")
			case errors.Is(err, fence.ErrStale):
				fmt.Println("stale")
			default:
				fmt.Println(err)
			}
		}
		switch verb {
		case "update":
			answer(f.Update(ctx, token, increment))
		case "pause":
			answer(f.Update(ctx, token, func(content []byte) ([]byte, error) {
				if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
					return nil, err
				}
				return increment(content)
			}))
		case "fill":
			for {
				answer(f.Write(ctx, token, page(token)))
			}
		}
	}
	os.Exit(0)
}

type worker struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startWorker(t *testing.T, path string) *worker {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FENCE_WORKER="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &worker{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(w.kill)
	return w
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

func (w *worker) tell(format string, args ...any) {
	if _, err := fmt.Fprintf(w.in, format+"\n", args...); err != nil {
		w.t.Error(err)
	}
}

func (w *worker) answer() string {
	if !w.out.Scan() {
		return "dead"
	}
	return w.out.Text()
}

// A holder in another process is stopped between its read and its write; the next one is not held up, and the first
// is refused when it wakes.
func TestProcess_PausedHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc")
	a, b := startWorker(t, path), startWorker(t, path)
	a.tell("update 33")
	if got := a.answer(); got != "ok" {
		t.Fatalf("first update: %s", got)
	}
	a.tell("pause 33")
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(a.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the worker did not stop: %v, %v", status, err)
	}
	b.tell("update 34")
	if got := b.answer(); got != "ok" {
		t.Errorf("the next holder: %s, want ok", got)
	}
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got := a.answer(); got != "stale" {
		t.Errorf("the holder that slept: %s, want stale", got)
	}
	if got := newGuardedFile(t, path).Read(); got != 2 {
		t.Errorf("number %d, want 2", got)
	}
}

// Four processes increment at once, each time with the next token and with no lock: all that was acknowledged is there.
func TestProcess_NoneLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc")
	var mu sync.Mutex
	var tokens uint64
	acked := 0
	var wg sync.WaitGroup
	for range 4 {
		w := startWorker(t, path)
		wg.Go(func() {
			for range 25 {
				mu.Lock()
				tokens++
				token := tokens
				mu.Unlock()
				w.tell("update %d", token)
				switch got := w.answer(); got {
				case "ok":
					mu.Lock()
					acked++
					mu.Unlock()
				case "stale":
				default:
					t.Errorf("update %d: %s", token, got)
				}
			}
		})
	}
	wg.Wait()
	if got := newGuardedFile(t, path).Read(); got != acked || acked == 0 {
		t.Errorf("number %d after %d acknowledged increments", got, acked)
	}
	t.Logf("%d of %d acknowledged", acked, tokens)
}

// Writers are killed wherever they happen to be. After each death the content is whole and no older than what was
// acknowledged, the token before is refused, and nothing but the two files is left.
func TestProcess_Killed(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	f := fence.NewFile(path, 0o600)
	for i := range 30 {
		token := uint64(i + 1)
		w := startWorker(t, path)
		w.tell("fill %d", token)
		for range 1 + i%7 { // the kill lands at a new place each time
			if got := w.answer(); got != "ok" {
				t.Fatalf("fill %d: %s", token, got)
			}
		}
		w.kill()
		content, err := f.Read()
		if err != nil || string(content) != string(page(token)) {
			t.Fatalf("after killing %d: torn or old content %.60q, %v", token, content, err)
		}
		if err := f.Claim(ctx, token-1); token > 1 && !errors.Is(err, fence.ErrStale) {
			t.Fatalf("after killing %d: token %d: %v, want ErrStale", token, token-1, err)
		}
	}
	if err := f.Write(ctx, 31, []byte("end")); err != nil {
		t.Fatal(err)
	}
	wantDir(t, path, "doc", "doc.fence")
}

// A step of another process that does not end is waited for no longer than the context lasts.
func TestProcess_WaitEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc")
	f := fence.NewFile(path, 0o600)
	if err := f.Claim(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	side, err := os.Open(path + ".fence")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(side.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("lost")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	if err := f.Claim(ctx, 2); !errors.Is(err, reason) {
		t.Errorf("claim behind a stuck process: %v, want the context's cause", err)
	}
	if err := side.Close(); err != nil {
		t.Fatal(err)
	}
	// The wait that was given up must not keep the lock.
	if err := f.Claim(context.Background(), 2); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A later holder comes while an earlier one is in the middle of Write, past its claim and not yet at the rename: the
// earlier is refused there, for the check is repeated in the step that replaces the content.
func TestProcess_OvertakenInWrite(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "doc")
	f := fence.NewFile(path, 0o600)
	// The lock of the temporary file that belongs to token 33 keeps a writer with that token right there.
	temp, err := os.Create(filepath.Join(filepath.Dir(path), ".doc.fence-33"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(temp.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Write(ctx, 33, []byte("33")) }()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if side, _ := os.ReadFile(path + ".fence"); strings.Contains(string(side), fmt.Sprintf("%020d", 33)) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the writer did not claim")
		}
		runtime.Gosched()
	}
	if err := f.Write(ctx, 34, []byte("34")); err != nil {
		t.Fatal(err)
	}
	if err := temp.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, fence.ErrStale) {
		t.Errorf("the overtaken writer: %v, want ErrStale", err)
	}
	if content, err := f.Read(); string(content) != "34" {
		t.Errorf("content %q, %v; want 34", content, err)
	}
	wantDir(t, path, "doc", "doc.fence")
}

func page(token uint64) []byte { return []byte(strings.Repeat(fmt.Sprintf("%020d\n", token), 400)) }
