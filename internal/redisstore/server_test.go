package redisstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// masters is a Conn to these.
type masters struct {
	redisconn.Conn
	all []redisconn.DoFunc
}

func (m masters) EachMaster(_ context.Context, visit func(do redisconn.DoFunc) error) error {
	for _, do := range m.all {
		if err := visit(do); err != nil {
			return err
		}
	}
	return nil
}

// One master of a Cluster is dead, and its place not taken yet. Who opens the store is told, and
// has the others.
func TestAMasterThatCannotBeReachedIsNoReasonToUseNone(t *testing.T) {
	says := func(text string) redisconn.DoFunc {
		return func(context.Context, ...string) (any, error) { return text, nil }
	}
	up, replica := says("role:master\r\naof_enabled:0\r\n"), says("role:slave\r\nmaster_host:b\r\nmaster_port:1\r\n")
	down := func(context.Context, ...string) (any, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	for what, c := range map[string]struct {
		all   []redisconn.DoFunc
		warns bool
		fails bool
	}{
		"all answer":          {[]redisconn.DoFunc{up, up}, false, false},
		"the first is down":   {[]redisconn.DoFunc{down, up, up}, true, false},
		"the last is down":    {[]redisconn.DoFunc{up, down}, true, false},
		"all are down":        {[]redisconn.DoFunc{down, down}, false, true},
		"the only one":        {[]redisconn.DoFunc{down}, false, true},
		"down, and a replica": {[]redisconn.DoFunc{down, replica}, false, true},
	} {
		s, err := Inspect(t.Context(), masters{all: c.all}, "", nil)
		warned := slices.Contains(s.warnings, "a master of the cluster does not answer: whether it can lose locks is unknown")
		if warned != c.warns || c.warns && (s.AppendOnly || s.Syncs || !s.Forgets) {
			t.Errorf("%s: %+v: warned %v, want %v, and the worst to be assumed", what, s, warned, c.warns)
		}
		if c.fails != errors.Is(err, driver.ErrNotSent) || !c.fails && err != nil {
			t.Errorf("%s: %v: want an error that says that nothing was sent: %v", what, err, c.fails)
		}
	}
}
