package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// StartEtcd starts one etcd and returns when it serves clients. The arguments have the form "--quota-backend-bytes=1000000".
func StartEtcd(ctx context.Context, o Options) (*Server, error) {
	if o.TLS {
		return nil, fmt.Errorf("servertest: only a single Redis speaks TLS: leave Options.TLS unset")
	}
	return start(ctx, etcd("member-1", func(s *Server) (string, error) {
		if s.bus == 0 {
			var err error
			if s.bus, err = FreePort(); err != nil {
				return "", err
			}
		}
		return etcdMember("member-1", s.bus), nil
	}), o)
}

// Etcds is an etcd of several members.
type Etcds struct {
	Members []*Server
}

// StartEtcds starts an etcd of that many members and returns when all of them serve clients. The options are those of every member;
// the ports are chosen, and where Dir is given each member has a folder in it.
func StartEtcds(ctx context.Context, members int, o Options) (_ *Etcds, err error) {
	if members < 1 {
		return nil, fmt.Errorf("servertest: an etcd has at least one member, not %d", members)
	}
	if err := o.several(); err != nil {
		return nil, err
	}
	const attempts = 5 // each is lost only to a process that takes a port between our look and a member's
	for i := 1; ; i++ {
		c, err := startEtcds(ctx, members, o)
		if err == nil || i == attempts || !errors.Is(err, errPortTaken) {
			return c, err
		}
	}
}

// startEtcds starts the members side by side: none serves clients before most of them are there.
func startEtcds(ctx context.Context, members int, o Options) (*Etcds, error) {
	c := &Etcds{Members: make([]*Server, members)}
	var all []string
	buses := make([]int, members)
	for i := range members {
		bus, err := FreePort()
		if err != nil {
			return nil, err
		}
		buses[i] = bus
		all = append(all, etcdMember("member-"+strconv.Itoa(i+1), bus))
	}
	err := together(members, func(i int) (err error) {
		name := "member-" + strconv.Itoa(i+1)
		p := etcd(name, func(s *Server) (string, error) {
			s.bus = buses[i]
			return strings.Join(all, ","), nil
		})
		o := o
		if o.Dir != "" {
			o.Dir = filepath.Join(o.Dir, name)
			if err := os.MkdirAll(o.Dir, 0o700); err != nil {
				return err
			}
		}
		c.Members[i], err = startOnce(ctx, p, o)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// etcdMember is how a member is named to the others.
func etcdMember(name string, bus int) string { return fmt.Sprintf("%s=http://127.0.0.1:%d", name, bus) }

// etcd is one member; all gives it the port for the others and says who the members are.
func etcd(name string, all func(s *Server) (string, error)) program {
	return program{
		command: "etcd", ready: "serving client traffic",
		args: func(s *Server) ([]string, error) {
			members, err := all(s)
			if err != nil {
				return nil, err
			}
			client, peer := "http://"+s.Addr(), fmt.Sprintf("http://127.0.0.1:%d", s.bus)
			return slices.Concat([]string{
				"--name=" + name, "--data-dir=" + s.etcdData(), "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
				"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + members,
				"--logger=zap", "--log-outputs=stderr",
			}, s.o.Args), nil
		},
		url: func(s *Server) string { return "etcd://" + s.Addr() },
	}
}

// etcdData is the folder that etcd makes itself.
func (s *Server) etcdData() string { return filepath.Join(s.dir, "data") }

// Forget removes the data of an etcd that is not running: its Restart begins with nothing.
func (s *Server) Forget() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.process.over() {
		return fmt.Errorf("servertest: the server at %s is running: stop it before its data is removed", s.Addr())
	}
	return os.RemoveAll(s.etcdData())
}

// URL names all members.
func (c *Etcds) URL() string { return "etcd://" + strings.Join(c.Addrs(), ",") }

// Addrs are the addresses of all members.
func (c *Etcds) Addrs() []string {
	addrs := make([]string, len(c.Members))
	for i, s := range c.Members {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Close kills all members and removes their folders.
func (c *Etcds) Close() error { return closeAll(c.Members...) }
