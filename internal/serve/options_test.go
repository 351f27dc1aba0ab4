package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// D1: a page about locks that anybody can reach is a button for anybody. Away from this machine the
// server does not listen without saying who may use it; and a token is not sent over a network as
// it is.
func TestD01_NobodyListensToStrangers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := write(t, filepath.Join(dir, "tokens"), "token="+secret+" name=ana read=*\n")
	local := []string{"127.0.0.1:0", "127.0.0.2:0", "[::1]:0", "localhost:0", "unix:" + filepath.Join(dir, "socket")}
	remote := []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:7070", "example.org:7070", "[::ffff:192.0.2.1]:7070"}
	with := map[string]Options{
		"nothing":             {},
		"a host":              {Hosts: []string{"locks.example.org"}},
		"tokens":              {TokenFile: tokens},
		"TLS":                 {TLSCert: "cert", TLSKey: "key"},
		"tokens, TLS":         {TokenFile: tokens, TLSCert: "cert", TLSKey: "key"},
		"certificates":        {ClientCA: "ca", TLSCert: "cert", TLSKey: "key"},
		"a proxy":             {BehindTLSProxy: true},
		"tokens, a proxy":     {TokenFile: tokens, BehindTLSProxy: true},
		"certificates, token": {ClientCA: "ca", TokenFile: tokens, TLSCert: "cert", TLSKey: "key"},
	}
	good := map[string]bool{"tokens, TLS": true, "certificates": true, "tokens, a proxy": true, "certificates, token": true}
	says := map[string]string{"tokens": "--behind-tls-proxy"}
	for name, o := range with {
		for _, at := range local {
			if err := o.guarded(at, nil); err != nil {
				t.Errorf("%s with %s: %v", at, name, err)
			}
		}
		for _, at := range remote {
			err := o.guarded(at, nil)
			switch {
			case good[name] && err != nil:
				t.Errorf("%s with %s: %v", at, name, err)
			case !good[name] && (err == nil || !errors.As(err, new(*ConfigError))):
				t.Errorf("%s with %s: error %v, want a refusal", at, name, err)
			case !good[name] && !strings.Contains(err.Error(), says[name]):
				t.Errorf("%s with %s: error %v does not say %q", at, name, err, says[name])
			}
		}
	}

	// What the socket says counts more than what the address was called.
	o := Options{}
	if err := o.guarded("localhost:7070", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}); err == nil {
		t.Error("localhost that is 192.0.2.1 is taken for loopback")
	}
	if err := o.guarded("", &net.TCPAddr{IP: net.IPv6loopback}); err != nil {
		t.Errorf("a socket of systemd on ::1: %v", err)
	}

	// And the whole server does not start: nobody can connect afterwards.
	for _, at := range []string{"0.0.0.0:0", ":0"} {
		err := Run(t.Context(), fill(&Options{Listen: at, Stores: [][2]string{{"main", "mem:"}}, Ready: func(u string) { t.Errorf("serves %s", u) }}))
		if !errors.As(err, new(*ConfigError)) || !strings.Contains(err.Error(), "--token-file") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// Options that contradict each other, or name files that cannot be used, are refused before
// anything listens.
func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := write(t, filepath.Join(dir, "tokens"), "token="+secret+" name=ana read=*\n")
	open := write(t, filepath.Join(dir, "open"), "token="+secret+" name=ana read=*\n")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	certs := write(t, filepath.Join(dir, "certs"), "token="+secret+" name=ana\ncert=ops.example.org\n")
	bad := write(t, filepath.Join(dir, "bad"), "token="+secret+"\n")
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ours := makeCA(t, dir)
	stores := [][2]string{{"main", "mem:"}}
	for _, c := range []struct {
		o    Options
		says string
	}{
		{Options{TLSCert: "x"}, "want both"},
		{Options{TLSKey: "x"}, "want both"},
		{Options{ClientCA: "x"}, "--client-ca without TLS"},
		{Options{TLSCert: "x", TLSKey: "x", ClientCA: "x", AllowBreak: true}, "which certificates may break"},
		{Options{Connections: 9}, "--max-connections 9"},
		{Options{Streams: -1}, "--max-streams -1"},
		{Options{Drain: -time.Second}, "--drain -1s"},
		{Options{Drain: time.Hour}, "--drain 1h"},
		{Options{Prefix: "locks"}, "--prefix"},
		{Options{Prefix: "/"}, "--prefix"},
		{Options{Prefix: "/locks/"}, "--prefix"},
		{Options{Prefix: "/../x"}, "--prefix"},
		{Options{Prefix: "/a b"}, "--prefix"},
		{Options{Prefix: "//x"}, "--prefix"},
		{Options{Listen: "127.0.0.1"}, "want HOST:PORT"},
		{Options{Listen: "unix:"}, "without a path"},
		{Options{Listen: "unix:@interlock"}, "names no file, so that every user may connect"},
		{Options{Listen: "127.0.0.1:70700"}, "invalid port"},
		{Options{Listen: "127.0.0.1:no port"}, "unknown port"},
		{Options{TokenFile: filepath.Join(dir, "none")}, "no such file"},
		{Options{TokenFile: dir}, "is no file"},
		{Options{TokenFile: pipe}, "is no file"}, // nobody writes into it
		{Options{TokenFile: open}, "can be read or changed by others (mode 0644)"},
		{Options{TokenFile: bad}, "line 1: no name="},
		{Options{TokenFile: tokens, TLSCert: filepath.Join(dir, "none"), TLSKey: ours.serverKey}, "--tls-cert and --tls-key"},
		{Options{TLSCert: ours.serverCert, TLSKey: ours.serverKey, ClientCA: filepath.Join(dir, "none")}, "--client-ca"},
		{Options{TLSCert: ours.serverCert, TLSKey: ours.serverKey, ClientCA: tokens}, "no certificate in PEM"},
		{Options{Stores: [][2]string{{"a", "mem:"}, {"a", "mem:"}}}, "two stores are called"},
		{Options{Stores: [][2]string{{"a b", "mem:"}}}, "a b"},
		{Options{Stores: [][2]string{{"a", "nothing:here"}}}, "unknown scheme"},
		{Options{Hosts: []string{"http://locks.example.org/"}}, `--host "http://locks.example.org/"`},
		{Options{Hosts: []string{"locks.example.org", "*"}, TokenFile: filepath.Join(dir, "none")}, `--host "*": want a name or an address`},
		{Options{Hosts: []string{""}}, "--host is empty"},
		{Options{TokenFile: certs}, "line 2: cert=, and no certificate of a client is looked at: want --client-ca with --tls-cert and --tls-key"},
	} {
		if c.o.Stores == nil {
			c.o.Stores = stores
		}
		ctx, stop := context.WithCancel(t.Context())
		c.o.Ready = func(u string) {
			t.Errorf("%q: serves %s", c.says, u)
			stop()
		}
		err := Run(ctx, fill(&c.o))
		stop()
		if !errors.As(err, new(*ConfigError)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want %q as a mistake in the options, got %v", c.says, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error has the token: %v", err)
		}
	}
}

// fill has what the command line gives where nothing is said.
func fill(o *Options) *Options {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Connections == 0 {
		o.Connections = 100
	}
	if o.Streams == 0 {
		o.Streams = 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := writeFile(name, text); err != nil {
		t.Fatal(err)
	}
	return name
}

func writeFile(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }

// A socket is only this user's, takes the place of one that nobody listens on any more, and of no
// other.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v: want 0600", info.Mode(), err)
	}
	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "somebody listens there already") {
		t.Errorf("beside another one: %v", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as one that is killed
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, err = listenUnix(path)
	if err != nil {
		t.Fatalf("after one that was killed: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file := write(t, path, "somebody's data")
	if _, err := listenUnix(file); err == nil {
		t.Error("a file was replaced by a socket")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "somebody's data" {
		t.Errorf("the file has %q, %v", b, err)
	}
}

// A server is reached by its names, and by the addresses that it listens on.
func TestReachable(t *testing.T) {
	t.Parallel()
	got := reachable([]string{"a.example"}, []net.Listener{addressed{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7)}}, addressed{&net.TCPAddr{IP: net.IPv6loopback}}, addressed{&net.UnixAddr{Name: "x"}}})
	if fmt.Sprint(got) != "[a.example 192.0.2.7]" {
		t.Errorf("reachable %v", got)
	}
}

// addressed is a listener that only has an address.
type addressed struct{ at net.Addr }

func (a addressed) Addr() net.Addr          { return a.at }
func (addressed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (addressed) Close() error              { return nil }
