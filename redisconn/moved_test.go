package redisconn_test

import (
	"errors"
	"testing"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/redisconn"
)

func TestMasterMovesBehindOneAddress(t *testing.T) {
	t.Run("by URL", func(t *testing.T) {
		redistest.TryConnMoves(t, func(t *testing.T, addr string) redisconn.Conn {
			c, err := redisconn.Open(t.Context(), redisconn.Config{Addrs: []string{addr}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			return c
		})
	})
	t.Run("a user's rueidis", func(t *testing.T) {
		redistest.TryConnMoves(t, func(t *testing.T, addr string) redisconn.Conn {
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			return redisconn.Rueidis(client)
		})
	})
}

func TestMoved(t *testing.T) {
	for _, c := range []struct {
		words []string
		v     any
		err   error
		want  bool
	}{
		{err: redisconn.ParseError("READONLY You can't write against a read only replica."), want: true},
		{err: redisconn.ParseError("MASTERDOWN Link with MASTER is down"), want: true},
		{err: redisconn.ParseError("LOADING Redis is loading the dataset in memory"), want: true},
		{err: redisconn.ParseError("UNBLOCKED force unblock from blocking operation, instance state changed"), want: true},
		{err: redisconn.ParseError("OOM command not allowed")},
		{err: errors.New("READONLY, says somebody else")},
		{words: []string{"INFO"}, v: "# Replication\r\nrole:slave\r\n", want: true},
		{words: []string{"INFO"}, v: "# Replication\r\nrole:master\r\n"},
		{words: []string{"GET", "k"}, v: "\nrole:slave"},
	} {
		if got := redisconn.Moved(c.words, c.v, c.err); got != c.want {
			t.Errorf("%q answered %q, %v: moved %v, want %v", c.words, c.v, c.err, got, c.want)
		}
	}
}
