package redislock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver/drivertest"
)

// worker is another process that takes and releases a lock as fast as it can, until its input ends.
type worker struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

const (
	workerVariable = "REDISLOCK_TEST_WORKER"
	workerTTL      = "REDISLOCK_TEST_TTL"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(workerVariable); url != "" {
		if err := hammer(url, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func hammer(url, name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	ttl, _ := time.ParseDuration(os.Getenv(workerTTL)) // default: the client's own
	client, err := interlock.Open(ctx, url, &interlock.Options{TTL: ttl})
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Println("ready")
	for ctx.Err() == nil {
		lease, err := client.Mutex(name).Lock(ctx)
		if err != nil {
			continue
		}
		_ = lease.Release()
	}
	return nil
}

func startWorker(t drivertest.T, url, name string) *worker { return startWorkerWith(t, url, name, 0) }

func startWorkerWith(t drivertest.T, url, name string, ttl time.Duration) *worker {
	cmd := exec.Command(os.Args[0], name)
	cmd.Env = append(os.Environ(), workerVariable+"="+url, workerTTL+"="+ttl.String())
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
	return &worker{cmd, stdin}
}

func (w *worker) kill() {
	_ = w.stdin.Close()
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}
