package redisconn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/driver"
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

// Only what a server that is not the master has answered is sent once more; every other answer
// stands.
func TestResend(t *testing.T) {
	cmds := []redisconn.Command{{Words: []string{"GET", "a"}}, {Words: []string{"DEL", "b"}}, {Words: []string{"DEL", "c"}}}
	replies := []redisconn.Reply{{Value: "1"}, {Err: redisconn.ParseError("READONLY")}, {Err: errors.New("cut")}}
	want := []redisconn.Reply{replies[0], {Value: int64(1)}, replies[2]}
	var sent []string
	send := func(again []redisconn.Command) []redisconn.Reply {
		for _, cmd := range again {
			sent = append(sent, cmd.Words[1])
		}
		return []redisconn.Reply{want[1]}
	}
	for range 2 { // the second time nothing has moved
		redisconn.Resend(cmds, replies, send)
		if !slices.Equal(replies, want) || !slices.Equal(sent, []string{"b"}) {
			t.Errorf("sent %q, answers %v; want b alone sent, once, and %v", sent, replies, want)
		}
	}
}

// A command that was answered by a replica, and by nobody when it was sent once more, says both.
func TestResendWithoutAnAnswer(t *testing.T) {
	cmds, replies := []redisconn.Command{{Words: []string{"DEL", "a"}}}, []redisconn.Reply{{Err: redisconn.ParseError("READONLY You can't")}}
	redisconn.Resend(cmds, replies, func([]redisconn.Command) []redisconn.Reply {
		return []redisconn.Reply{{Err: context.DeadlineExceeded}}
	})
	err := replies[0].Err
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "is a replica") || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("error %v: want that there was no answer, and that a replica answered before", err)
	}
}
