package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/interlock-go/interlock/internal/servertest"
)

// site is where one run takes place: a new directory and, for adapters that
// lock on servers, new ones, so that no run finds what another has left.
type site struct {
	dir       string
	redis     []*servertest.Server // none where the adapter needs none
	postgres  *servertest.Server   // nil where the adapter needs none
	etcd      *servertest.Server   // the same
	mariadb   *servertest.Server   // the same
	memcached *servertest.Server   // the same
	zookeeper *servertest.Server   // the same
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
	for range a.redis {
		one, err := servertest.Start(ctx, servertest.Options{})
		if err != nil {
			return nil, err
		}
		s.redis = append(s.redis, one)
	}
	if a.postgres {
		s.postgres, err = servertest.StartPostgres(ctx, servertest.Options{
			Args: []string{"-c", "fsync=on", "-c", "max_connections=" + strconv.Itoa(maxBackends)},
		})
		if err != nil {
			return nil, err
		}
	}
	if a.mariadb {
		s.mariadb, err = servertest.StartMariaDB(ctx, servertest.Options{
			Args: []string{
				"--innodb-flush-method=fsync", "--max-connections=" + strconv.Itoa(maxBackends),
				"--innodb-buffer-pool-size=128M", "--innodb-log-file-size=96M", // the defaults, which tests make smaller
			},
		})
		if err != nil {
			return nil, err
		}
	}
	if a.etcd {
		s.etcd, err = servertest.StartEtcd(ctx, servertest.Options{})
	}
	if a.zookeeper {
		s.zookeeper, err = servertest.StartZooKeeper(ctx, servertest.Options{Args: zooKeeperArgs})
	}
	if a.memcached {
		s.memcached, err = servertest.StartMemcached(ctx, servertest.Options{})
	}
	return s, err
}

// maxBackends is how many connections a database may have: enough for a
// thousand waiters with one each.
const maxBackends = 1100

// store is the directory that the workers share.
func (s *site) store() string { return filepath.Join(s.dir, "store") }

// place is where a worker of this run stands.
func (s *site) place(process, of int) place {
	p := place{Dir: s.store(), Process: process, Processes: of}
	for _, one := range s.redis {
		p.Redis = append(p.Redis, one.Addr())
	}
	if s.postgres != nil {
		p.Postgres = s.postgres.URL()
	}
	if s.etcd != nil {
		p.Etcd = s.etcd.Addr()
	}
	if s.mariadb != nil {
		p.MariaDB = s.mariadb.URL()
	}
	if s.zookeeper != nil {
		p.ZooKeeper = s.zookeeper.Addr()
	}
	if s.memcached != nil {
		p.Memcached = s.memcached.Addr()
	}
	return p
}

// openArena makes a site with the board on which its workers count.
func openArena(ctx context.Context, adapterName string) (*site, board, string, error) {
	s, err := openSite(ctx, adapterName)
	if err != nil {
		return nil, board{}, "", err
	}
	path := filepath.Join(s.dir, "board")
	b, err := openBoard(path)
	if err != nil {
		return nil, board{}, "", errors.Join(err, s.close())
	}
	return s, b, path, nil
}

func (s *site) close() error {
	var err error
	for _, one := range s.redis {
		err = errors.Join(err, one.Close())
	}
	for _, one := range []*servertest.Server{s.postgres, s.etcd, s.mariadb, s.memcached, s.zookeeper} {
		if one != nil {
			err = errors.Join(err, one.Close())
		}
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
