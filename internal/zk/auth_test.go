package zk

import (
	"errors"
	"maps"
	"net"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// The example of RFC 2831, section 4.
func TestDigestMD5(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"": {}, "a": {"a": ""}, `a="x,\"y\\",b=c`: {"a": `x,"y\`, "b": "c"}, `a="open`: {"a": "open"}, "=": {"": ""}, ` a=1, b="2"`: {"a": "1", "b": "2"},
	} {
		if got := directives(text); !maps.Equal(got, want) {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
	challenge := directives(`realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8`)
	a := saslAnswer{Login{User: "chris", Password: "secret"}, challenge["realm"], challenge["nonce"], "OA6MHXh6VqTrRk"}
	if got, want := a.of("AUTHENTICATE:imap/elwood.innosoft.com"), "d388dad90d4bbd760a152321f2143af7"; got != want {
		t.Errorf("the proof is %s, want %s", got, want)
	}
	if got, want := a.of(":imap/elwood.innosoft.com"), "ea40f60335c427b5527b84dbabcdfffd"; got != want {
		t.Errorf("the server's proof is %s, want %s", got, want)
	}
}

// A server that takes any login is believed only when it proves that it knows the password, too.
func TestAServerThatDoesNotKnowThePassword(t *testing.T) {
	for _, proof := range []string{"rspauth=ea40f60335c427b5527b84dbabcdfffd", "rspauth=", ""} {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			for _, token := range []string{`realm="r",nonce="n",qop="auth",algorithm=md5-sess,charset=utf-8`, proof} {
				if _, err := readFrame(theirs); err != nil {
					return
				}
				body := record{}.int(authXid).long(0).int(0).string(token)
				if _, err := theirs.Write(append(record{}.int(int32(len(body))), body...)); err != nil {
					return
				}
			}
		}()
		if err := (Login{User: "app", Password: "secret", SASL: true}).login(ours); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("a server whose proof is %q: %v; want that it is refused", proof, err)
		}
		_ = ours.Close()
	}
}
