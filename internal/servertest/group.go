package servertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// several returns an error for options that servers in a group cannot have.
func (o Options) several() error {
	switch {
	case o.Port != 0:
		return errors.New("servertest: several servers cannot share a port: leave Options.Port zero")
	case o.TLS:
		return errNoTLS
	}
	return nil
}

// in returns the options for one of several servers: a folder that the caller named has a folder
// for each.
func (o Options) in(name string) (Options, error) {
	if o.Dir == "" {
		return o, nil
	}
	o.Dir = filepath.Join(o.Dir, name)
	return o, os.MkdirAll(o.Dir, 0o700)
}

// startIn is start for one of several servers.
func startIn(ctx context.Context, p program, o Options, name string) (*Server, error) {
	o, err := o.in(name)
	if err != nil {
		return nil, err
	}
	return start(ctx, p, o)
}

// addrs are the addresses of the servers.
func addrs(servers []*Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Addr()
	}
	return all
}

// joined are the addresses of the servers, as URLs have them.
func joined(servers []*Server) string { return strings.Join(addrs(servers), ",") }

// closeAll closes those servers that were started, all at once.
func closeAll(servers ...*Server) error {
	return together(len(servers), func(i int) error {
		if servers[i] == nil {
			return nil
		}
		return servers[i].Close()
	})
}
