package redisconn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

func TestParseError(t *testing.T) {
	for text, code := range map[string]string{
		"READONLY You can't write against a read only replica.": "READONLY",
		"MOVED 3999 127.0.0.1:6381":                             "MOVED",
		"NOAUTH":                                                "NOAUTH",
		"ERR: unknown":                                          "ERR",
		"":                                                      "",
	} {
		e := redisconn.ParseError(text)
		if e.Code != code || e.Error() != text {
			t.Errorf("ParseError(%q) has code %q and says %q; want %q and the text", text, e.Code, e.Error(), code)
		}
		if wrapped := fmt.Errorf("ask: %w", e); !redisconn.Is(wrapped, code) || redisconn.Is(wrapped, code+"X") {
			t.Errorf("Is does not find %q in %v, or finds others", code, wrapped)
		}
	}
	if redisconn.Is(nil, "ERR") || redisconn.Is(io.EOF, "ERR") {
		t.Error("Is finds a code in what no server said")
	}
}

// What an error says of the outcome decides what becomes of a claim: refused and not sent changed
// nothing, anything else may have.
func TestClassify(t *testing.T) {
	answer := func(text string) error { return redisconn.ParseError(text) }
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, c := range []struct {
		err  error
		want error // nil: the outcome is open
	}{
		{answer("NOAUTH Authentication required."), driver.ErrRefused},
		{answer("WRONGPASS invalid username-password pair"), driver.ErrRefused},
		{answer("ERR invalid password"), driver.ErrRefused},
		{answer("ERR AUTH <password> called without any password configured for the default user."), driver.ErrRefused},
		{answer("NOPERM this user has no permissions"), driver.ErrRefused},
		{answer("WRONGTYPE Operation against a key holding the wrong kind of value"), driver.ErrRefused},
		{answer("CORRUPT il:{job}:claims: want records, as this library writes them"), driver.ErrRefused},
		{answer("CROSSSLOT Keys in request don't hash to the same slot"), driver.ErrRefused},
		{answer("NEWLAYOUT the value at this name is of a newer layout"), driver.ErrRefused},
		{answer("ERR No such master with that name"), driver.ErrRefused},
		{answer("ERR max number of clients reached"), driver.ErrNotSent},
		{answer("ERR max number of clients + cluster connections reached"), driver.ErrNotSent},
		{answer("ERR unknown command 'EVALSHA'"), driver.ErrRefused},
		{answer("unknown command 'EVALSHA'"), driver.ErrRefused}, // as rueidis passes it on
		{answer("ERR Function not found"), driver.ErrRefused},
		{answer("ERR Unknown Redis command called from script script: f, on @user_script:1."), nil},
		{answer("READONLY You can't write against a read only replica."), driver.ErrNotSent},
		{answer("LOADING Redis is loading the dataset in memory"), driver.ErrNotSent},
		{answer("MISCONF Redis is configured to save RDB snapshots"), driver.ErrNotSent},
		{answer("OOM command not allowed when used memory > 'maxmemory'."), driver.ErrNotSent},
		{answer("CLUSTERDOWN The cluster is down"), driver.ErrNotSent},
		{answer("TRYAGAIN Multiple keys request during rehashing of slot"), driver.ErrNotSent},
		{answer("BUSY Redis is busy running a script."), driver.ErrNotSent},
		{answer("MASTERDOWN Link with MASTER is down"), driver.ErrNotSent},
		{dial, driver.ErrNotSent},
		{fmt.Errorf("write: %w", dial), driver.ErrNotSent},
		{answer("ERR something new"), nil},
		{answer("EXECABORT Transaction discarded"), nil},
		{&net.OpError{Op: "read", Net: "tcp", Err: io.EOF}, nil},
		{&net.OpError{Op: "write", Net: "tcp", Err: io.ErrShortWrite}, nil},
		{io.EOF, nil},
		{context.DeadlineExceeded, nil},
	} {
		got := redisconn.Classify(c.err)
		if is, want := errors.Is(got, driver.ErrBadData), redisconn.Is(c.err, "WRONGTYPE") || redisconn.Is(c.err, "CORRUPT"); is != want {
			t.Errorf("%v became %v: it matches ErrBadData: %v, want %v", c.err, got, is, want)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v became %v, which hides it", c.err, got)
		}
		for _, verdict := range []error{driver.ErrRefused, driver.ErrNotSent} {
			if is := errors.Is(got, verdict); is != (c.want == verdict) { //nolint:errorlint // which of the two it is
				t.Errorf("%v matches %q: %v; want %v", got, verdict, is, !is)
			}
		}
		if again := redisconn.Classify(got); c.want != nil && again.Error() != got.Error() {
			t.Errorf("classified twice it is %v", again)
		}
	}
	if redisconn.Classify(nil) != nil {
		t.Error("nil is an error")
	}
}

// A server that does not know a command says with which arguments: the ID of a claim, by which it
// is released, is among them.
func TestAnUnknownCommandDoesNotTellItsArguments(t *testing.T) {
	const says = "ERR unknown command 'EVALSHA', with args beginning with: 'f' '2' 'x' 'il:{x}:fence:x' 'il1:M1Uqp7kev0YX24sqfa3FfQ-{' "
	if got := redisconn.Classify(redisconn.ParseError(says)).Error(); strings.Contains(got, "M1Uqp") || !strings.Contains(got, "'EVALSHA'") {
		t.Errorf("%q, want the command and no argument", got)
	}
}

// A command that a script ran has failed. Whoever asks hears what it said, and not in which line of
// which script.
func TestWhereInAScriptACommandFailedIsLeftOut(t *testing.T) {
	const text, where = "OOM command not allowed when used memory > 'maxmemory'.", " script: 6b1bf486c81ceb7edf3c093f4c48582e38c0e791, on @user_script:12."
	for says, script := range map[string]bool{text + where: true, text: false} {
		err := redisconn.Classify(redisconn.ParseError(says))
		if got := err.Error(); !strings.HasSuffix(got, text) || redisconn.InScript(err) != script {
			t.Errorf("%q became %q, of a script: %t; want %q, %t", says, got, redisconn.InScript(err), text, script)
		}
	}
}
