// Package worker is another process of a test, of the same binary, that takes and releases a lock as fast as it can and can be
// stopped anywhere.
package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver/drivertest"
)

// Worker is another process, of the same test binary, that takes and releases a lock as fast as it can until its input
// ends.
type Worker struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

const workerVariable = "INTERLOCK_TEST_WORKER"

// Work makes this process a worker if [Start] started it, and does not return then. TestMain begins with it.
func Work() {
	url := os.Getenv(workerVariable)
	if url == "" {
		return
	}
	if err := hammer(url, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func hammer(url, name, ttl string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	d, err := time.ParseDuration(ttl)
	if err != nil {
		return err
	}
	client, err := interlock.Open(ctx, url, &interlock.Options{TTL: d})
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Fprintln(os.Stdout, "ready")
	for ctx.Err() == nil {
		lease, err := client.Mutex(name).Lock(ctx)
		if err != nil {
			continue
		}
		_ = lease.Release()
	}
	return nil
}

// Start starts a worker, and returns when it has opened the store.
func Start(t drivertest.T, url, name string, ttl time.Duration) *Worker {
	t.Helper()
	cmd := exec.Command(os.Args[0], name, ttl.String())
	cmd.Env = append(os.Environ(), workerVariable+"="+url)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("worker: %v", err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("worker: %v", err)
	}
	return &Worker{cmd, stdin}
}

// Kill ends the process, stopped or not; more than once without harm.
func (w *Worker) Kill() {
	_ = w.stdin.Close()
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}
