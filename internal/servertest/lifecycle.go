package servertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/internal/servertest/internal/process"
	"github.com/interlock-go/interlock/internal/servertest/internal/skew"
)

// start starts a server of the program. Where the port is its own choice and somebody else takes it
// first, start chooses again. The context bounds the start only.
func start(ctx context.Context, p program, o Options) (*Server, error) {
	if o.Port != 0 {
		return startOnce(ctx, p, o)
	}
	return retry(func() (*Server, error) { return startOnce(ctx, p, o) })
}

// retry calls start again while a port that it chose is taken. Each attempt is lost only to a
// process that takes a port between our look and the server's.
func retry[S any](start func() (S, error)) (S, error) {
	const attempts = 5
	for i := 1; ; i++ {
		s, err := start()
		if err == nil || i == attempts || !errors.Is(err, process.ErrPortTaken) {
			return s, err
		}
	}
}

func startOnce(ctx context.Context, p program, o Options) (_ *Server, err error) {
	if o.TLS && !p.tls {
		return nil, errNoTLS
	}
	s := &Server{program: p, o: o, port: o.Port, dir: o.Dir}
	defer func() {
		if err != nil {
			s.ports.Release()
		}
	}()
	if s.port == 0 {
		if s.port, err = s.ports.Add(); err != nil {
			return nil, err
		}
	} else {
		_ = s.ports.Keep(s.port) // the caller may have taken it, or want to see what happens then
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "servertest-"); err != nil {
			return nil, fmt.Errorf("servertest: no folder for a server: %w", err)
		}
	}
	s.clock = skew.Clock{Dir: s.dir}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.launch(ctx); err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	return s, nil
}

var errNoTLS = errors.New("servertest: only a single Redis or etcd speaks TLS: leave Options.TLS unset")

// launch starts the process and waits until it is up. The caller holds mu.
func (s *Server) launch(ctx context.Context) error {
	l, err := s.prepare()
	if err != nil {
		return err
	}
	var p *process.Process
	var refused error
	err = poll(ctx, "the last process does not go", func() error {
		p, refused = process.Start(ctx, l)
		if refused != nil && s.program.again != "" && strings.Contains(refused.Error(), s.program.again) {
			return refused
		}
		return nil
	})
	if err = errors.Join(err, refused); err != nil {
		return err
	}
	s.process, s.paused = p, false
	return nil
}

// prepare writes the server's files and returns how its process is started. The caller holds mu.
func (s *Server) prepare() (l process.Launch, err error) {
	l = process.Launch{Command: cmp.Or(s.o.Program, s.program.command), Env: slices.Clone(s.o.Env), Ready: s.program.ready}
	if l.Args, err = s.program.args(s); err != nil {
		return l, err
	}
	if s.o.Clock {
		env, err := s.clock.Env()
		if err != nil {
			return l, err
		}
		l.Env = append(l.Env, env...)
	}
	if s.program.as == nil {
		return l, nil
	}
	if l.As, err = s.program.as(); err != nil {
		return l, err
	}
	for _, path := range s.clock.Files() {
		if err := l.As.Own(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l, err
		}
	}
	return l, nil
}

// Stop asks the server to end (SIGTERM, a PostgreSQL by SIGINT, which waits for no client) and
// waits until it has; a paused server is resumed for it. One that has not ended after ten seconds
// is killed, which is an error. Stopping a server that is not running does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop()
}

// stop is Stop for a caller that holds mu.
func (s *Server) stop() error { return s.end(cmp.Or(s.program.end, syscall.SIGTERM)) }

// end ends the process by a signal. The caller holds mu.
func (s *Server) end(sig syscall.Signal) error {
	if err := s.process.End(sig); err != nil {
		return fmt.Errorf("servertest: cannot stop the server at %s: %w", s.Addr(), err)
	}
	return nil
}

// Kill ends the server at once (SIGKILL), paused or not, and waits until it is gone. What it had
// not yet written to its append-only file is lost. Killing a server that is not running does
// nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.process.Kill(); err != nil {
		return fmt.Errorf("servertest: cannot kill the server at %s: %w", s.Addr(), err)
	}
	return nil
}

// Pause stops the server's process (SIGSTOP): its connections stay open and nothing is answered,
// until Resume.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process.Over() {
		return fmt.Errorf("servertest: the server at %s is not running and cannot be paused", s.Addr())
	}
	s.paused = true
	return s.process.Pause()
}

// Resume lets a paused server go on (SIGCONT); one that is not paused notices nothing.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process.Over() {
		return fmt.Errorf("servertest: the server at %s is not running and cannot be resumed", s.Addr())
	}
	s.paused = false
	return s.process.Resume()
}

// Step moves the server's wall clock by d, forward or back, on top of earlier steps, and leaves its
// monotonic clock alone. The server must have been started with Options.Clock. It sees the step
// before it carries out a command that arrives after Step has returned.
func (s *Server) Step(d time.Duration) error {
	if !s.o.Clock {
		return fmt.Errorf("servertest: the server at %s was started without Options.Clock", s.Addr())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.Step(d)
}

// LoseData removes what an etcd or a ZooKeeper that is not running has on disk: its Restart begins
// with nothing.
func (s *Server) LoseData() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.program.data == "" {
		return fmt.Errorf("servertest: %s has no data that can be removed: use Options.Dir", s.program.command)
	}
	if !s.process.Over() {
		return fmt.Errorf("servertest: the server at %s is running: stop it before its data is removed", s.Addr())
	}
	return os.RemoveAll(filepath.Join(s.dir, s.program.data))
}

// Restart starts the server again on its port, with its folder and arguments, after stopping it if
// it still runs, and returns when it has loaded its data and accepts connections. A stepped clock
// stays stepped. The context bounds the start.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stop(); err != nil {
		return err
	}
	return s.launch(ctx)
}

// Close kills the server and removes its folder unless Options named it. A second call does
// nothing.
func (s *Server) Close() error {
	defer s.ports.Release()
	return errors.Join(s.quit(), s.Kill(), s.removeDir())
}

// quit ends a server that would leave something behind in the system if it was killed: shared
// memory, of which there are only so many pieces.
func (s *Server) quit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.program.quit == 0 {
		return nil
	}
	return s.end(s.program.quit)
}

func (s *Server) removeDir() error {
	if s.o.Dir != "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
