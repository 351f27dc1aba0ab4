package servertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options say what Start starts. The zero value is a Redis that keeps nothing on disk and evicts nothing.
type Options struct {
	Dir   string   // for the server's files; when empty a temporary folder, which Close removes
	Args  []string // for redis-server, in the form "--appendonly", "yes"; they win over the defaults
	Port  int      // when 0, a free one
	Env   []string // "NAME=value", besides those of this process
	Clock bool     // Step works; needs gcc
	TLS   bool     // one Redis or etcd that listens by TLS only

	Program string // the server's program, where it is another than the one on the path

	// Peers, of an etcd of several members, returns the address at which the others shall reach the member of that number from
	// 0, which listens for them at addr: that of a proxy. Nil: they reach each other at once.
	Peers func(member int, addr string) (string, error)
}

// Server is one server, running or not. Its methods may be called concurrently.
type Server struct {
	program program
	o       Options
	port    int
	bus     int              // the second port of a Cluster's node
	marks   []net.PacketConn // of its ports
	dir     string

	mu      sync.Mutex // held while a process starts or ends
	process *process   // the last one started, perhaps over by now
	paused  bool
	offset  time.Duration
}

// program is what a Server runs: how it is called, how it says that it is up, and how it is asked to end.
type program struct {
	command string // redis-server when empty
	args    func(s *Server) ([]string, error)
	ready   string                 // part of the line of its log that tells that it accepts connections
	url     func(s *Server) string // redis:// when nil
	end     syscall.Signal         // SIGTERM when 0
	quit    syscall.Signal         // has it leave at once, with what it keeps in the system; 0 where it keeps nothing there
	as      func() (*account, error)
	again   string // part of a log that says that the last process still has to go
}

var redis = program{ready: "Ready to accept connections", args: func(s *Server) ([]string, error) {
	return slices.Concat([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir, "--daemonize", "no",
		"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
		"--enable-debug-command", "yes",
		// A replica gets its copy at once instead of after five seconds and a first sign of life after one instead of ten,
		// and one that is stuck holds up no shutdown for ten.
		"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1", "--shutdown-timeout", "1",
	}, s.o.Args), nil
}}

// Start starts one Redis and returns when it accepts connections. Where the port is its own choice and somebody else takes
// it first, Start chooses again. The context bounds the start only.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.TLS {
		return start(ctx, encrypted, o)
	}
	return start(ctx, redis, o)
}

func start(ctx context.Context, p program, o Options) (*Server, error) {
	const attempts = 5 // each is lost only to a process that takes the port between our look and the server's
	for i := 1; ; i++ {
		s, err := startOnce(ctx, p, o)
		if err == nil || o.Port != 0 || i == attempts || !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
}

// several returns an error for options that servers in a group cannot have.
func (o Options) several() error {
	switch {
	case o.Port != 0:
		return errors.New("servertest: several servers cannot share a port: leave Options.Port zero")
	case o.TLS:
		return errors.New("servertest: only a single Redis or etcd speaks TLS: leave Options.TLS unset")
	}
	return nil
}

// startIn is start for one of several servers: a folder that the caller named has a folder for each.
func startIn(ctx context.Context, p program, o Options, name string) (*Server, error) {
	if o.Dir != "" {
		o.Dir = filepath.Join(o.Dir, name)
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return nil, err
		}
	}
	return start(ctx, p, o)
}

func startOnce(ctx context.Context, p program, o Options) (_ *Server, err error) {
	s := &Server{program: p, o: o, port: o.Port, dir: o.Dir}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.port == 0 {
		if s.port, err = s.freePort(); err != nil {
			return nil, err
		}
	} else {
		_ = s.keep(s.port) // whoever chose it may have taken it, or want to see what happens then
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "servertest-"); err != nil {
			return nil, fmt.Errorf("servertest: no folder for a server: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.launch(ctx); err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	return s, nil
}

// launch starts the process and waits until it is up. The caller holds mu.
func (s *Server) launch(ctx context.Context) error {
	args, err := s.program.args(s)
	if err != nil {
		return err
	}
	env := slices.Clone(s.o.Env)
	if s.o.Clock {
		preload, err := s.preload()
		if err != nil {
			return err
		}
		env = append(env, preload...)
	}
	run := launch{command: cmp.Or(s.o.Program, s.program.command, "redis-server"), args: args, env: env, ready: s.program.ready}
	if s.program.as != nil {
		if run.as, err = s.program.as(); err != nil {
			return err
		}
		for _, name := range []string{"clock.so", filepath.Base(s.offsetFile())} {
			if err := run.as.own(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	var p *process
	var refused error
	err = poll(ctx, "the last process does not go", func() error {
		p, refused = startProcess(ctx, run)
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

// Addr is the server's address, "127.0.0.1:port".
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// String is the address.
func (s *Server) String() string { return s.Addr() }

// URL is the server's address in the form "redis://127.0.0.1:port", by TLS "rediss://127.0.0.1:port", or that of a database's
// superuser.
func (s *Server) URL() string {
	if s.program.url != nil {
		return s.program.url(s)
	}
	if s.o.TLS {
		return "rediss://" + s.Addr()
	}
	return "redis://" + s.Addr()
}

// Port is the port, the same after a Restart.
func (s *Server) Port() int { return s.port }

// Dir is the folder of the server's files.
func (s *Server) Dir() string { return s.dir }

// Pid is the process of the last start.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.pid()
}

// up reports whether the server runs and can answer.
func (s *Server) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.process.over() && !s.paused
}

// Log is what the process of the last start has written, cut at the front when that is much.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.log.String()
}

// Close kills the server and removes its folder unless Options named it. A second call does nothing.
func (s *Server) Close() error {
	defer s.release()
	return errors.Join(s.leave(), s.Kill(), s.removeDir())
}

func (s *Server) removeDir() error {
	if s.o.Dir != "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}
