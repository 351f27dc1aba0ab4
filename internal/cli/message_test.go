package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// What an error says again on its way up is left out, and nothing else.
func TestInOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ message, want string }{
		{`"job" is held by interlock/ann@web-1:42 (a: b), in file:/tmp/store`, `"job" is held by interlock/ann@web-1:42 (a: b), in file:/tmp/store`},
		{"redis: redis: nil", "redis: nil"},
		{"interlock: interlock: interlock: no", "interlock: no"},
		{"held by ann: held by ann", "held by ann"},
		{"redisconn: connect to a:1: not sent: dial tcp a:1: connect: connection refused", "redisconn: connect to a:1: not sent: connect: connection refused"},
		{"no answer within 2s, asked a:1 3 times: dial tcp a:1: i/o timeout", "no answer within 2s, asked a:1 3 times: i/o timeout"},
		{
			"redlock: 0 of 3: master 1 (a:1): not sent: redisconn: connect to a:1: not sent: EOF; master 2 (b:1): not sent: redisconn: connect to b:1: not sent: EOF",
			"redlock: 0 of 3: master 1 (a:1): not sent: redisconn: EOF; master 2 (b:1): not sent: redisconn: EOF",
		},
		{
			"failed to connect to `user=app`:\n\ta:1 (10.0.0.1): dial tcp a:1: refused\n\ta:1 (10.0.0.1): dial tcp a:1: refused\n\tb:1 (10.0.0.2): dial tcp b:1: refused",
			"failed to connect to `user=app`: a:1 (10.0.0.1): refused; b:1 (10.0.0.2): refused",
		},
		{
			`rpc error: code = Unavailable desc = connection error: desc = "transport: dial tcp a:1: connect: connection refused"`,
			`Unavailable: connection error: "transport: dial tcp a:1: connect: connection refused"`,
		},
		{"a\nb\na", "a; b"},
		{`"x: a: a: a" is held by ann (b; b; c: d: d: e)`, `"x: a: a: a" is held by ann (b; b; c: d: d: e)`},
		{"", ""},
	} {
		if got := inOneLine(c.message); got != c.want {
			t.Errorf("%q:\n\t%q, want\n\t%q", c.message, got, c.want)
		}
	}
}

// A command that was stopped says why, and once that the lock is lost.
func TestLostSaysWhy(t *testing.T) {
	t.Parallel()
	lost := func(reason error) error { return fmt.Errorf("%w: %w", interlock.ErrLost, reason) }
	for _, c := range []struct {
		why       error
		guardDied bool
		want      string
	}{
		{lost(driver.ErrBroken), false, "broken by an operator"},
		{lost(fmt.Errorf("filelock: %w", driver.ErrBroken)), true, "broken by an operator"},
		{lost(driver.ErrGone), false, "gone from the store, as by break --now"},
		{lost(interlock.ErrMaxHold), false, "held for its maximum"},
		{lost(errors.New("no answer")), false, "no answer"},
		{nil, true, "its guard has died"},
		{nil, false, "its time was over"},
	} {
		h := &hold{wanted: wanted{name: "job", store: "file:/locks"}}
		if err := h.lost(c.why, c.guardDied); err.Error() != `lost "job", in file:/locks, and stopped the command: `+c.want || statusOf(err) != exitLost {
			t.Errorf("%v: %q with status %d, want %q", c.why, err, statusOf(err), c.want)
		}
	}
}
