package servertest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// StartEtcd starts one etcd, which may speak TLS to its clients, and returns when it serves them.
// The arguments have the form "--quota-backend-bytes=1000000".
func StartEtcd(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, etcd("member-1", func(s *Server) (own, all string, err error) {
		if err := s.reserveBus(); err != nil {
			return "", "", err
		}
		own = etcdPeer(s.bus)
		return own, "member-1=http://" + own, nil
	}), o)
}

// Etcds is an etcd of several members.
type Etcds struct {
	Members []*Server
}

// StartEtcds starts an etcd of that many members and returns when all of them serve clients. The
// options are those of every member; the ports are chosen, and where Dir is given each member has a
// folder in it.
func StartEtcds(ctx context.Context, members int, o Options) (_ *Etcds, err error) {
	if members < 1 {
		return nil, fmt.Errorf("servertest: an etcd has at least one member, not %d", members)
	}
	if err := o.several(); err != nil {
		return nil, err
	}
	return retry(func() (*Etcds, error) { return startEtcds(ctx, members, o) })
}

// Etcd starts one etcd for the test and closes it at the test's end. The arguments have the form
// "--quota-backend-bytes=1000000".
func Etcd(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartEtcd(ctx, Options{Args: args}) })
}

// EtcdMembers starts an etcd of several members for the test and closes them at its end. The
// arguments are those of every member.
func EtcdMembers(t TB, members int, args ...string) *Etcds {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Etcds, error) { return StartEtcds(ctx, members, Options{Args: args}) })
}

// startEtcds starts the members side by side: none serves clients before most of them are there.
func startEtcds(ctx context.Context, members int, o Options) (*Etcds, error) {
	c := &Etcds{Members: make([]*Server, members)}
	var all, peers []string
	buses := make([]int, members)
	for i := range members {
		bus, err := FreePort()
		if err != nil {
			return nil, err
		}
		peer := etcdPeer(bus)
		if o.Peers != nil {
			if peer, err = o.Peers(i, peer); err != nil {
				return nil, err
			}
		}
		buses[i], peers = bus, append(peers, peer)
		all = append(all, fmt.Sprintf("member-%d=http://%s", i+1, peer))
	}
	err := together(members, func(i int) (err error) {
		name := "member-" + strconv.Itoa(i+1)
		p := etcd(name, func(s *Server) (string, string, error) {
			if s.bus == 0 {
				s.bus = buses[i]
				_ = s.ports.Keep(s.bus) // if somebody has it the member fails, and all are started again
			}
			return peers[i], strings.Join(all, ","), nil
		})
		o, err := o.in(name)
		if err != nil {
			return err
		}
		c.Members[i], err = startOnce(ctx, p, o)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// etcdPeer is where a member listens for the others.
func etcdPeer(bus int) string { return fmt.Sprintf("127.0.0.1:%d", bus) }

// etcd is one member; members gives it the port for the others and says where those reach it, and
// who all are.
func etcd(name string, members func(s *Server) (own, all string, err error)) program {
	return program{
		command: "etcd", ready: "serving client traffic", data: "data", tls: true,
		args: func(s *Server) ([]string, error) {
			own, all, err := members(s)
			if err != nil {
				return nil, err
			}
			client, extra := "http://"+s.Addr(), s.o.Args
			if s.o.TLS {
				if err := s.certify(); err != nil {
					return nil, err
				}
				client, extra = "https://"+s.Addr(), append([]string{"--cert-file=" + s.CertFile(), "--key-file=" + s.keyFile()}, extra...)
			}
			return slices.Concat([]string{
				"--name=" + name, "--data-dir=" + filepath.Join(s.dir, s.program.data), "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
				"--listen-peer-urls=http://" + etcdPeer(s.bus), "--initial-advertise-peer-urls=http://" + own, "--initial-cluster=" + all,
				"--logger=zap", "--log-outputs=stderr",
			}, extra), nil
		},
		url: func(s *Server) string {
			if s.o.TLS {
				return "etcd+tls://" + s.Addr() + "?ca=" + url.QueryEscape(s.CertFile())
			}
			return "etcd://" + s.Addr()
		},
	}
}

// URL names all members.
func (c *Etcds) URL() string { return "etcd://" + joined(c.Members) }

// Addrs are the addresses of all members.
func (c *Etcds) Addrs() []string { return addrs(c.Members) }

// Close kills all members and removes their folders.
func (c *Etcds) Close() error { return closeAll(c.Members...) }
