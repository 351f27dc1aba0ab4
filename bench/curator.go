package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/internal/foreigntest"
)

//go:embed CuratorBench.java
var curatorBench []byte

// curatorLocks are InterProcessMutexes of Curator, in a process of Java that
// hears over a pipe what to do. Each goroutine has a thread there with a mutex
// of its own, all of them a session.
type curatorLocks struct {
	process *exec.Cmd
	over    chan struct{} // closed when the process answers no more

	mu      sync.Mutex
	in      io.WriteCloser
	answers []chan string // by thread
}

func openCurator(ctx context.Context, p place) (locker, error) {
	classes, err := foreigntest.CompileWithCurator("CuratorBench", curatorBench)
	if err != nil {
		return nil, err
	}
	l := &curatorLocks{over: make(chan struct{})}
	l.process = exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-Xmx256m", "-cp", classes, "CuratorBench", p.ZooKeeper)
	l.process.Stderr = os.Stderr
	if l.in, err = l.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := l.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.process.Start(); err != nil {
		return nil, fmt.Errorf("bench: run Curator: %w", err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "READY" {
		_ = l.process.Process.Kill()
		_ = l.process.Wait()
		return nil, fmt.Errorf("bench: Curator begins with %q: want READY", lines.Text())
	}
	go l.hear(lines)
	return l, nil
}

// hear hands each answer to whose it is.
func (l *curatorLocks) hear(lines *bufio.Scanner) {
	defer close(l.over)
	for lines.Scan() {
		number, rest, _ := strings.Cut(lines.Text(), " ")
		l.mu.Lock()
		n, err := strconv.Atoi(number)
		if err == nil && n < len(l.answers) {
			l.answers[n] <- rest
		}
		l.mu.Unlock()
	}
}

func (l *curatorLocks) mutex(name string) mutex {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, make(chan string, 1))
	return curatorMutex{l, len(l.answers) - 1, name, l.answers[len(l.answers)-1]}
}

func (l *curatorLocks) close() error {
	err := l.in.Close() // with which it ends
	<-l.over
	return errors.Join(err, l.process.Wait())
}

type curatorMutex struct {
	*curatorLocks
	thread int
	name   string
	answer <-chan string
}

func (m curatorMutex) ask(ctx context.Context, what string) error {
	m.mu.Lock()
	_, err := fmt.Fprintf(m.in, "%d %s\n", m.thread, what)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case answer := <-m.answer:
		if answer != "" {
			return fmt.Errorf("bench: Curator: %s", answer)
		}
		return nil
	case <-m.over:
		return errors.New("bench: Curator has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m curatorMutex) lock(ctx context.Context) (func() error, error) {
	if err := m.ask(ctx, "lock "+m.name); err != nil {
		return nil, err
	}
	return func() error { return m.ask(context.WithoutCancel(ctx), "unlock") }, nil
}
