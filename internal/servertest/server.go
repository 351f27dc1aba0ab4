package servertest

import (
	"strconv"
	"sync"
	"syscall"

	"github.com/interlock-go/interlock/internal/servertest/internal/ports"
	"github.com/interlock-go/interlock/internal/servertest/internal/process"
	"github.com/interlock-go/interlock/internal/servertest/internal/skew"
)

// Options say what Start starts. The zero value is a Redis that keeps nothing on disk and evicts
// nothing.
type Options struct {
	Dir   string   // for the server's files; when empty a temporary folder, which Close removes
	Args  []string // for redis-server, in the form "--appendonly", "yes"; they win over the defaults
	Port  int      // when 0, a free one
	Env   []string // "NAME=value", besides those of this process
	Clock bool     // Step works; needs gcc
	TLS   bool     // one Redis or etcd that listens by TLS only

	Program string // the server's program, where it is another than the one on the path

	// Peers, of an etcd of several members, returns the address at which the others reach the
	// member of that number, from 0, which listens for them at addr: that of a proxy. Nil: they
	// reach each other without one.
	Peers func(member int, addr string) (string, error)
}

// Server is one server, running or not. Its methods may be called concurrently.
type Server struct {
	program program
	o       Options
	dir     string
	port    int
	bus     int            // the port for other servers of the group; 0 where there is none
	ports   ports.Reserved // used only before the server is returned, and by Close

	mu      sync.Mutex       // held while a process starts or ends
	process *process.Process // the last one started, perhaps over by now
	paused  bool
	clock   skew.Clock
}

// program is what a Server runs: how it is called, how it says that it is up, and how it is asked
// to end. The functions are called before each start, with Server.mu held.
type program struct {
	command string
	args    func(s *Server) ([]string, error)
	ready   string // part of the line of its log that says it accepts connections
	url     func(s *Server) string
	end     syscall.Signal // SIGTERM when 0
	quit    syscall.Signal // ends it at once, with what it keeps in the system; 0 where it keeps nothing there
	as      func() (*process.Account, error)
	again   string // part of a log that says that the last process still has to go
	data    string // the part of its folder that has its data, where LoseData works
	tls     bool   // it may listen by TLS
}

// Addr is the server's address, "127.0.0.1:port".
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// String is the address.
func (s *Server) String() string { return s.Addr() }

// URL is the server's address in the form "redis://127.0.0.1:port", by TLS
// "rediss://127.0.0.1:port", or that of a database's superuser.
func (s *Server) URL() string { return s.program.url(s) }

// Port is the port, the same after a Restart.
func (s *Server) Port() int { return s.port }

// Dir is the folder of the server's files.
func (s *Server) Dir() string { return s.dir }

// Pid is the process of the last start.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.Pid()
}

// up reports whether the server runs and can answer.
func (s *Server) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.process.Over() && !s.paused
}

// Log is what the process of the last start has written, cut at the front when that is much.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.Log()
}

// reserveBus chooses a second port at the first start. It stays the same after a restart, as the
// other servers of a group expect.
func (s *Server) reserveBus() (err error) {
	if s.bus == 0 {
		s.bus, err = s.ports.Add()
	}
	return err
}
