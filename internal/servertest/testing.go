package servertest

import (
	"context"
	"fmt"
	"time"
)

// TB is the part of testing.TB that the functions for tests use; programs that start servers do not link package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// startLimit bounds the start of whatever a test asks for, on a machine that does other things as well.
const startLimit = time.Minute

// Redis starts one server for the test and closes it at the test's end. The arguments have the form "--appendonly", "yes".
func Redis(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return Start(ctx, Options{Args: args}) })
}

// Postgres starts one PostgreSQL for the test and closes it at the test's end. The arguments have the form "-c", "fsync=on".
func Postgres(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartPostgres(ctx, Options{Args: args}) })
}

// MariaDB starts one MariaDB for the test and closes it at the test's end. The arguments have the form "--sql-mode=ANSI".
func MariaDB(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartMariaDB(ctx, Options{Args: args}) })
}

// Etcd starts one etcd for the test and closes it at the test's end. The arguments have the form "--quota-backend-bytes=1000000".
func Etcd(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartEtcd(ctx, Options{Args: args}) })
}

// EtcdMembers starts an etcd of several members for the test and closes them at its end. The arguments are those of every member.
func EtcdMembers(t TB, members int, args ...string) *Etcds {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Etcds, error) { return StartEtcds(ctx, members, Options{Args: args}) })
}

// Memcached starts one memcached for the test and closes it at the test's end. The arguments have the form "-m", "4".
func Memcached(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartMemcached(ctx, Options{Args: args}) })
}

// ZooKeeper starts one server for the test and closes it at the test's end. The arguments are those of StartZooKeeper.
func ZooKeeper(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartZooKeeper(ctx, Options{Args: args}) })
}

// ZooKeeperEnsemble starts several for the test and closes them at its end. The arguments are those of every member.
func ZooKeeperEnsemble(t TB, members int, args ...string) *Ensemble {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Ensemble, error) {
		return StartEnsemble(ctx, members, Options{Args: args})
	})
}

// ZooKeeperEnsembleOver starts several, as StartEnsembleOver does, and closes them at the test's end. The arguments are those of every member.
func ZooKeeperEnsembleOver(t TB, members int, between func(from, to int, addr string) (string, error), args ...string) *Ensemble {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Ensemble, error) {
		return StartEnsembleOver(ctx, members, Options{Args: args}, between)
	})
}

// Sentinel starts a master, a replica and three Sentinels for the test and closes them at its end. The arguments are
// those of master and replica.
func Sentinel(t TB, args ...string) *Sentinels {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Sentinels, error) { return StartSentinel(ctx, Options{Args: args}) })
}

// RedisCluster starts a Cluster for the test and closes it at its end. The arguments are those of every node.
func RedisCluster(t TB, masters, replicas int, args ...string) *Cluster {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Cluster, error) {
		return StartCluster(ctx, masters, replicas, Options{Args: args})
	})
}

func forTest[S interface{ Close() error }](t TB, start func(context.Context) (S, error)) S {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	s, err := start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("cannot close it: %v", err)
		}
	})
	return s
}

// MustDo is Do for a test, which fails at an error.
func (s *Server) MustDo(t TB, args ...string) string {
	t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		t.Fatal(fmt.Errorf("%q: %w", args, err))
	}
	return reply
}
