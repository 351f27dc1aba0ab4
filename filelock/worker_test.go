//go:build linux || darwin

package filelock

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
)

// Tests start themselves again as other processes: with workerVariable set the binary is a worker that carries out
// one task.
const workerVariable = "FILELOCK_TEST_TASK"

// task is what a worker does.
type task struct {
	Do    string
	Dir   string
	Name  string
	Board string
	TTL   time.Duration
	Slot  int
	Count int
}

var tasks = map[string]func(task, *bufio.Reader) error{
	"hammer":  hammer,
	"hold":    holdUntilToldOtherwise,
	"wait":    waitAndTell,
	"contend": contend,
	"leave":   leaveChild,
	"starve":  starve,
	"mingle":  mingle,
	"full":    onAFullDisk,
	"rest":    tellTheRest,
	"sleep":   func(_ task, in *bufio.Reader) error { _, err := io.Copy(io.Discard, in); return err },
}

func TestMain(m *testing.M) {
	text := os.Getenv(workerVariable)
	if text == "" {
		goleak.VerifyTestMain(m)
	}
	var j task
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = tasks[j.Do](j, bufio.NewReader(os.Stdin))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", j.Do+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// worker is another process.
type worker struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended sync.Once
}

// newWorker returns the command that carries out j, with what it inherits still to be added.
func newWorker(j task) *exec.Cmd {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	return cmd
}

type cleaner interface {
	Helper()
	Fatalf(string, ...any)
	Cleanup(func())
}

// startWorker starts another process that carries out j and inherits files.
func startWorker(t cleaner, j task, files ...*os.File) *worker {
	t.Helper()
	w := &worker{cmd: newWorker(j)}
	w.cmd.ExtraFiles = files
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	w.in, w.out = in, bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatalf("worker: %v", err)
	}
	t.Cleanup(w.kill)
	return w
}

// kill ends the worker as kill -9 does.
func (w *worker) kill() {
	w.ended.Do(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	})
}

// stop stops the worker; one that has ended cannot be.
func (w *worker) stop(t cleaner) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatalf("worker: stop: %v", err)
	}
	w.stopped(t)
}

// stopped waits until the worker, who was told to stop, has done so.
func (w *worker) stopped(t cleaner) {
	t.Helper()
	var info syscall.WaitStatus
	for {
		pid, err := syscall.Wait4(w.cmd.Process.Pid, &info, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid != w.cmd.Process.Pid || !info.Stopped() {
			t.Fatalf("worker: %v, %v: want it stopped", info, err)
		}
		return
	}
}

// hear waits for the line that the worker prints next.
func (w *worker) hear(t cleaner, want string) {
	t.Helper()
	got, err := w.out.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != want {
		t.Fatalf("worker %s: said %q (%v), want %q", w.cmd.Env[len(w.cmd.Env)-1], got, err, want)
	}
}

// say sends a line to the worker.
func (w *worker) say(t cleaner, what string) {
	t.Helper()
	if _, err := fmt.Fprintln(w.in, what); err != nil {
		t.Fatalf("worker: %v", err)
	}
}

// join opens a store and a session in it, as every worker does.
func join(j task) (*Driver, driver.Session, error) {
	d, err := New(j.Dir, nil)
	if err != nil {
		return nil, nil, err
	}
	s, err := d.Open(context.Background(), driver.Spec{ID: driver.NewID(), Owner: driver.Owner{Name: "worker", PID: os.Getpid()}, TTL: j.TTL})
	return d, s, err
}

// hold acquires c and waits until it is held.
func hold(ctx context.Context, s driver.Session, c driver.Claim) (driver.Grant, error) {
	g, err := s.Acquire(ctx, c)
	for err == nil && !g.Held {
		g, err = s.Wait(ctx, c)
	}
	return g, err
}

// mutexOf returns a new claim of name that waits.
func mutexOf(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
}

// onAFullDisk finds that it may not write another byte: before it opens a session, or with one that is open.
func onAFullDisk(j task, _ *bufio.Reader) error {
	d, err := New(j.Dir, nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	spec := driver.Spec{ID: driver.NewID(), TTL: j.TTL}
	s, err := d.Open(ctx, spec)
	if err != nil {
		return err
	}
	held := mutexOf("held")
	if _, err := s.Acquire(ctx, held); err != nil {
		return err
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY}); err != nil {
		return err
	}
	spec.ID = driver.NewID()
	_, errOpen := d.Open(ctx, spec)
	_, errAcquire := s.Acquire(ctx, mutexOf(j.Name))
	for what, err := range map[string]error{"session": errOpen, "claim": errAcquire} {
		if !errors.Is(err, driver.ErrUnable) || !strings.Contains(err.Error(), j.Dir) {
			return fmt.Errorf("a %s on a full disk: %w; want ErrUnable, and which file", what, err)
		}
	}
	if _, err := s.Renew(ctx); err != nil {
		return fmt.Errorf("a renewal writes nothing: %w", err)
	}
	fmt.Println("unable")
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}); err != nil {
		return err
	}
	if held, err := s.Release(ctx, held); err != nil || !held {
		return fmt.Errorf("release: held %v, %w", held, err)
	}
	if g, err := s.Acquire(ctx, mutexOf(j.Name)); err != nil || !g.Held {
		return fmt.Errorf("with room again: held %v, %w", g.Held, err)
	}
	fmt.Println("able")
	return nil
}

// hammer takes and releases the name as fast as it can until it is killed, one try after the other.
func hammer(j task, _ *bufio.Reader) error {
	_, s, err := join(j)
	if err != nil {
		return err
	}
	go renewEvery(s, j.TTL/4)
	ctx := context.Background()
	for n := 0; ; n++ {
		c := mutexOf(j.Name)
		c.Queue = false
		if _, err := s.Acquire(ctx, c); err != nil {
			return err
		}
		if _, err := s.Release(ctx, c); err != nil {
			return err
		}
		if n == 10 {
			fmt.Println("ready")
		}
	}
}

func renewEvery(s driver.Session, d time.Duration) {
	for range time.Tick(d) {
		if _, err := s.Renew(context.Background()); err != nil {
			return
		}
	}
}

// holdUntilToldOtherwise holds the name until its standard input ends.
func holdUntilToldOtherwise(j task, in *bufio.Reader) error {
	d, s, err := join(j)
	if err != nil {
		return err
	}
	go renewEvery(s, j.TTL/4)
	if _, err := hold(context.Background(), s, mutexOf(j.Name)); err != nil {
		return err
	}
	fmt.Println("held")
	go func() {
		for range s.(driver.LossNotifier).Lost() {
		}
		fmt.Println("lost")
	}()
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	return d.Close(context.Background())
}

// waitAndTell stands in line, says so, and says when it holds.
func waitAndTell(j task, in *bufio.Reader) error {
	_, s, err := join(j)
	if err != nil {
		return err
	}
	go renewEvery(s, j.TTL/4)
	c := mutexOf(j.Name)
	if _, err := s.Acquire(context.Background(), c); err != nil {
		return err
	}
	fmt.Println("waiting") // and from here on the record is left alone
	for held := false; !held; {
		g, err := s.Wait(context.Background(), c)
		if err != nil {
			return err
		}
		held = g.Held
	}
	fmt.Println("held")
	_, err = io.Copy(io.Discard, in)
	return err
}

// leaveChild holds the name and starts a child that inherits the session; the child lives until its standard input
// ends, which it shares with this process.
func leaveChild(j task, in *bufio.Reader) error {
	_, s, err := join(j)
	if err != nil {
		return err
	}
	if _, err := hold(context.Background(), s, mutexOf(j.Name)); err != nil {
		return err
	}
	child := newWorker(task{Do: "sleep"})
	child.ExtraFiles = s.(driver.Inheritor).Inherit()
	child.Stdin = os.Stdin
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println(child.Process.Pid)
	return child.Wait()
}

// tellTheRest says, when it is asked, how many former holders of the name have left something running.
func tellTheRest(j task, in *bufio.Reader) error {
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	d, err := New(j.Dir, nil)
	if err != nil {
		return err
	}
	rest, err := d.Rest(context.Background(), j.Name)
	if err != nil {
		return err
	}
	fmt.Println(len(rest), "former holders")
	return d.Close(context.Background())
}

// starve takes and renews more names than it may open files.
func starve(j task, _ *bufio.Reader) error {
	d, s, err := join(j)
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 40, Max: 40}); err != nil {
		return err
	}
	for i := range j.Count {
		if g, err := s.Acquire(context.Background(), mutexOf(fmt.Sprint(j.Name, i))); err != nil || !g.Held {
			return fmt.Errorf("name %d: held %v, %w", i, g.Held, err)
		}
		if _, err := s.Renew(context.Background()); err != nil {
			return err
		}
	}
	fmt.Println("done")
	return d.Close(context.Background())
}
