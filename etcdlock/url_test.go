package etcdlock_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/internal/servertest"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse("etcd+tls://app:word@one,two:23?namespace=locks/&timeout=2s&server_name=etcd&password_file=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	c, o, err := etcdlock.ParseURL(u)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Endpoints, []string{"one:2379", "two:23"}) || c.Username != "app" || c.Password != "from file" || c.TLS.ServerName != "etcd" {
		t.Errorf("client %+v", c)
	}
	if o.Namespace != "locks/" || o.Timeout != 2*time.Second {
		t.Errorf("options %+v", o)
	}
	for raw, says := range map[string]string{
		"etcd://a/b":                           "want etcd://host:2379,host:2379, and ?namespace=",
		"etcd:a":                               "want etcd://host:2379",
		"etcd://a:0":                           `port "0" of host "a": want a number from 1 to 65535`,
		"etcd://a?timeout=-1s":                 "want a duration above 0",
		"etcd://a?ca=" + secret:                "parameters for TLS without TLS: want etcd+tls://",
		"etcd+tls://a?ca=" + secret:            "the file holds no certificate in PEM",
		"etcd+tls://a?cert=x&key=y":            "parameters cert and key: open x",
		"etcd+tls://a?cert=x":                  "want both",
		"etcd+tls://a?skip_verify=maybe":       `"maybe": want true or false`,
		"etcd://a?colour=red":                  `unknown parameter "colour"`,
		"etcd://:word@a":                       "a password and no user",
		"etcd://user:secret@word@a?x=1#@":      "an @ behind the host",
		"etcd://a?namespace=b&namespace=c":     "stands 2 times",
		"etcd://a?password_file=/no/such/file": "password_file",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if _, _, err = etcdlock.ParseURL(u); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") && !strings.Contains(says, "file") {
			t.Errorf("%s: %v, want %q", raw, err, says)
		}
	}
}

// A store that is not there says so, and that nothing was sent.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	nobody := servertest.Nobody(t)
	for _, user := range []string{"", "app:secret@"} {
		d, err := driver.OpenURL(context.Background(), "etcd://"+user+nobody+"?timeout=500ms")
		if err == nil {
			t.Fatalf("%v is opened", d)
		}
		if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("nobody there for %q: %v, want that nothing was sent, and why", user, err)
		}
	}
}

// A store that is away is dialled again and again without long pauses, so that it is found soon
// when it is back.
func TestDialsAgainSoon(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("eight dials take 3.5 s: make proof")
	}
	l, err := wire.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client(t, l.Addr().String()).ActiveConnection().Connect()
	const dials = 8 // with gRPC's usual pauses the last one would come 40 s after the first
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for i := range dials {
		conn, err := l.Accept()
		if err != nil {
			t.Fatalf("%d dials in %v, want %d: %v", i, patience, dials, err)
		}
		_ = conn.Close()
	}
}

// A server that speaks TLS alone is trusted by its certificate, and nobody else is.
func TestTLS(t *testing.T) {
	t.Parallel()
	server, err := servertest.StartEtcd(t.Context(), servertest.Options{TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	d, err := driver.OpenURL(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(context.Background())
	s := session(t, d)
	handOver(t, s, s, func() {})
	named, err := driver.OpenURL(t.Context(), server.URL()+"&server_name=localhost")
	if err != nil {
		t.Errorf("by another name that the certificate has: %v", err)
	} else {
		_ = named.Close(t.Context())
	}
	for raw, says := range map[string]string{
		"etcd+tls://" + server.Addr() + "?timeout=1s":  "certificate",
		server.URL() + "&server_name=other&timeout=1s": "certificate",
		"etcd://" + server.Addr() + "?timeout=1s":      "", // the server hangs up and does not say why
	} {
		if d, err := driver.OpenURL(t.Context(), raw); !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v, want that nothing was sent and %q", raw, d, err, says)
		}
	}
}

// guard has a server ask for names and passwords: app with the password secret may use what begins
// with locks/, and one the name a and the sessions.
func guard(t *testing.T, server *servertest.Server) {
	t.Helper()
	admin := client(t, server.Addr())
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(admin.UserAdd(t.Context(), "root", "r"))
	must(admin.RoleAdd(t.Context(), "root"))
	must(admin.UserGrantRole(t.Context(), "root", "root"))
	must(admin.UserAdd(t.Context(), "app", "secret"))
	must(admin.RoleAdd(t.Context(), "locks"))
	must(admin.RoleGrantPermission(t.Context(), "locks", "locks/", clientv3.GetPrefixRangeEnd("locks/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(admin.UserGrantRole(t.Context(), "app", "locks"))
	must(admin.UserAdd(t.Context(), "one", "secret"))
	must(admin.RoleAdd(t.Context(), "one"))
	for _, prefix := range []string{"a/", "interlock:sessions/"} {
		must(admin.RoleGrantPermission(t.Context(), "one", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite)))
	}
	must(admin.UserGrantRole(t.Context(), "one", "one"))
	must(admin.AuthEnable(t.Context()))
}

// A user of locks needs the rights to read and write under the namespace and no other, and a
// password that is right.
func TestRights(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	guard(t, server)
	open := func(user, namespace string) (driver.Driver, error) {
		return driver.OpenURL(t.Context(), "etcd://"+user+server.Addr()+"?timeout=1m&namespace="+namespace) // a login takes a busy server long
	}
	for _, try := range []struct{ user, namespace string }{{"app:wrong@", "locks/"}, {"app:secret@", "other/"}, {"", "locks/"}} {
		d, err := open(try.user, try.namespace)
		if !errors.Is(err, driver.ErrRefused) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q under %q: %v, %v, want it refused", try.user, try.namespace, d, err)
		}
	}
	for user, namespace := range map[string]string{"app:secret@": "locks/", "one:secret@": ""} {
		d, err := open(user, namespace)
		if err != nil {
			t.Fatalf("%s under %q: %v", user, namespace, err)
		}
		defer d.Close(t.Context())
		handOver(t, session(t, d), session(t, d), func() {})
	}
}

// A login that had no answer in time is no refusal, although the server says one when it is there
// at last: it is asked again.
func TestALoginWithoutAnswerIsNotRefused(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	guard(t, server)
	w := wire.New(t, server.Addr())
	heal := w.Stall(wire.Both)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for w.Count().Connections < 2 && t.Context().Err() == nil { // the second is of the look that tells why
			<-tick.C
		}
		heal()
	}()
	d, err := driver.OpenURL(t.Context(), "etcd://app:secret@"+w.Addr()+"?namespace=locks/&timeout=700ms")
	if err == nil {
		_ = d.Close(t.Context())
	}
	if !errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), w.Addr()) {
		t.Errorf("a login without an answer: %v, want that nothing was sent", err)
	}
}

// The server forgets the token of who holds and waits, as when it has expired or a password was
// changed: the client logs in again, also at a server that refuses a login with a token that it
// does not know.
func TestTokenIsForgotten(t *testing.T) {
	t.Parallel()
	server := servertest.Etcd(t)
	guard(t, server)
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Username: "root", Password: "r"})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	d, err := driver.OpenURL(t.Context(), "etcd://app:secret@"+server.Addr()+"?namespace=locks/&timeout=1m")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(context.Background())
	a, b := session(t, d), session(t, d)
	for range 2 {
		handOver(t, a, b, func() {
			if _, err := root.UserChangePassword(t.Context(), "app", "secret"); err != nil {
				t.Fatal(err)
			}
		})
	}
}
