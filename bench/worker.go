package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// jobVariable carries a job to a worker process: the same binary executed
// again.
const jobVariable = "INTERLOCK_BENCH_JOB"

// job is what a worker process is to do.
type job struct {
	Task     string // key of tasks
	Adapter  string
	Adapters []string // of a stage
	Place    place
	Board    string // path; empty where the task needs none
	First    int    // number of this process's first goroutine
	Count    int    // goroutines, or locks
	Hold     bool
	Waits    bool // it reports each wait
	Names    int  // locks to spread over
}

// tasks are what workers can do. A task talks in lines: it says what its
// parent waits for on out, hears from it on in, and ends with its result as
// JSON.
var tasks = map[string]func(ctx context.Context, j job, in *bufio.Reader, out io.Writer) error{
	"contend": contend,
	"crowd":   crowdTask,
	"denied":  tries,
	"hold":    hold,
	"follow":  follow,
	"pair":    pair,
	"rest":    rest,
	"stage":   perform,

	"stay awake": stayAwake,
}

// beWorker does the job of a worker process and reports whether this process
// is one. A worker ends when its parent does, because its standard input ends
// then.
func beWorker() (code int, yes bool) {
	text, yes := os.LookupEnv(jobVariable)
	if !yes {
		return 0, false
	}
	if err := work(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func work(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	task, ok := tasks[j.Task]
	if !ok {
		return fmt.Errorf("bench: no task %q", j.Task)
	}
	stop, err := startProfile(j)
	if err != nil {
		return err
	}
	return errors.Join(task(context.Background(), j, watchParent(), os.Stdout), stop())
}

// watchParent copies standard input and ends the process with it, so that no
// worker outlives a bench that was killed.
func watchParent() *bufio.Reader {
	r, w := io.Pipe()
	go func() {
		_, _ = io.Copy(w, os.Stdin)
		os.Exit(3)
	}()
	return bufio.NewReader(r)
}

// openLocker is what every task starts with.
func openLocker(ctx context.Context, j job) (locker, error) {
	a, err := findAdapter(j.Adapter)
	if err != nil {
		return nil, err
	}
	p := j.Place
	if a.files != nil {
		p.fd = os.NewFile(3, "inherited")
	}
	return a.open(ctx, p)
}

// getReady is what a task starts with that its parent lets go: it opens the
// locker, says ready, and returns when it hears the word.
func getReady(ctx context.Context, j job, in *bufio.Reader, out io.Writer) (locker, error) {
	l, err := openLocker(ctx, j)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "ready")
	_, err = in.ReadString('\n')
	return l, err
}

// enterContest is getReady for a task that keeps to the window on a board.
func enterContest(ctx context.Context, j job, in *bufio.Reader, out io.Writer) (board, locker, error) {
	b, err := openBoard(j.Board)
	if err != nil {
		return board{}, nil, err
	}
	l, err := getReady(ctx, j, in, out)
	return b, l, err
}

// worker is the parent's side of a worker process.
type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
}

// startWorker starts j; file, where not nil, becomes its descriptor 3.
func startWorker(ctx context.Context, j job, file *os.File) (*worker, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, self)}
	w.cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	w.cmd.Stderr = &w.errors
	w.cmd.WaitDelay = time.Second
	if file != nil {
		w.cmd.ExtraFiles = []*os.File{file}
	}
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: start a worker: %w", err)
	}
	return w, nil
}

// hear waits for the worker to say want.
func (w *worker) hear(want string) error {
	line, err := w.out.ReadString('\n')
	if err != nil {
		return w.failed(err)
	}
	if line = strings.TrimSpace(line); line != want {
		return fmt.Errorf("bench: a worker said %q instead of %q", line, want)
	}
	return nil
}

// say tells the worker to go on.
func (w *worker) say(word string) error {
	if _, err := io.WriteString(w.in, word+"\n"); err != nil {
		return w.failed(err)
	}
	return nil
}

// result reads the worker's result into v.
func (w *worker) result(v any) error {
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		return w.failed(err)
	}
	return json.Unmarshal(line, v)
}

// failed explains a conversation that broke off by what the worker left on
// its standard error.
func (w *worker) failed(err error) error {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	if text := strings.TrimSpace(w.errors.String()); text != "" {
		return errors.New(text)
	}
	return fmt.Errorf("bench: a worker ended early (%v): %w", w.cmd.ProcessState, err)
}

// kill ends the worker with SIGKILL.
func (w *worker) kill() { _ = w.cmd.Process.Kill() }

// stop ends the worker, however it is doing, and collects it.
func (w *worker) stop() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// finish lets a worker that has answered end by itself.
func (w *worker) finish() error {
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("bench: a worker's end: %w: %s", err, strings.TrimSpace(w.errors.String()))
	}
	return nil
}
