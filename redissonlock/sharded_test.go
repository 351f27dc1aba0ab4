package redissonlock_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redissonlock"
)

// masters is a Conn to these.
type masters struct {
	redisconn.Conn
	all []error // what each answers
}

func (m masters) EachMaster(ctx context.Context, visit func(do redisconn.DoFunc) error) error {
	for _, answer := range m.all {
		if err := visit(func(context.Context, ...string) (any, error) { return nil, answer }); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Messages of a shard are used where every master that answers knows them; one that is dead just
// then does not decide.
func TestMessagesOfAShardAreWhatMastersSay(t *testing.T) {
	no := redisconn.ParseError("ERR Unknown PUBSUB subcommand or wrong number of arguments for 'SHARDNUMSUB'")
	down := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for what, c := range map[string]struct {
		all     []error
		sharded bool
		err     error
	}{
		"all know them":        {[]error{nil, nil}, true, nil},
		"one does not":         {[]error{nil, no, nil}, false, nil},
		"one is dead":          {[]error{down, nil}, true, nil},
		"dead, and one is old": {[]error{no, down}, false, nil},
		"all are dead":         {[]error{down, down}, true, driver.ErrNotSent},
	} {
		if sharded, err := redissonlock.Sharded(t.Context(), masters{all: c.all}); sharded != c.sharded || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v; want %v, %v", what, sharded, err, c.sharded, c.err)
		}
	}
}
