package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/internal/servertest"
)

// site is where one run takes place: a new directory and, for adapters that
// lock on Redis, a new server, so that no run finds what another has left.
type site struct {
	dir   string
	redis *servertest.Server // nil where the adapter needs none
}

func openSite(ctx context.Context, adapterName string) (_ *site, err error) {
	a, err := findAdapter(adapterName)
	if err != nil {
		return nil, err
	}
	s := &site{}
	if s.dir, err = os.MkdirTemp("", "interlock-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := os.Mkdir(s.store(), 0o700); err != nil {
		return nil, err
	}
	if a.redis {
		if s.redis, err = servertest.Start(ctx, servertest.Options{}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// store is the directory that the workers share.
func (s *site) store() string { return filepath.Join(s.dir, "store") }

// place is where a worker of this run stands.
func (s *site) place(process, of int) place {
	p := place{Dir: s.store(), Process: process, Processes: of}
	if s.redis != nil {
		p.Redis = s.redis.Addr()
	}
	return p
}

// board makes the board of this run.
func (s *site) board() (*board, string, error) {
	path := filepath.Join(s.dir, "board")
	b, err := createBoard(path)
	return b, path, err
}

func (s *site) close() error {
	var err error
	if s.redis != nil {
		err = s.redis.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
