package serve

import (
	"fmt"
	"log/slog"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/hosts"
)

// Options are what the command line of interlock serve says.
type Options struct {
	Stores [][2]string // the name and the URL of each

	Listen     string // HOST:PORT or unix:PATH; "" for the sockets of systemd, or DefaultListen
	Hosts      []string
	Prefix     string
	AllowBreak bool

	TokenFile                 string
	TLSCert, TLSKey, ClientCA string
	BehindTLSProxy            bool // a proxy speaks TLS for this server

	Connections, Streams int
	Drain                time.Duration // from the signal to end until no request is accepted

	Logger *slog.Logger
	Ready  func(url string) // called when requests are answered, once for each address
}

// DefaultListen is where the server listens if nothing else is said.
const DefaultListen = "127.0.0.1:7070"

// A ConfigError is a mistake in the options or in a file that they name: nothing was served.
type ConfigError struct{ Err error }

// Error implements error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *ConfigError) Unwrap() error { return e.Err }

func configError(format string, args ...any) error { return &ConfigError{fmt.Errorf(format, args...)} }

// check refuses options that contradict each other. Whether they are safe depends on where the
// server listens: see guarded.
func (o *Options) check() error {
	switch {
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return configError("of --tls-cert and --tls-key there is one: want both")
	case o.ClientCA != "" && o.TLSCert == "":
		return configError("--client-ca without TLS: want --tls-cert and --tls-key, too")
	case o.AllowBreak && o.ClientCA != "" && o.TokenFile == "":
		return configError("--allow-break, and nothing says which certificates may break: want --token-file with lines cert=NAME break=PREFIX,…")
	case o.Connections < 10:
		return configError("--max-connections %d: want 10 or more", o.Connections)
	case o.Streams < 1:
		return configError("--max-streams %d: want 1 or more", o.Streams)
	case o.Prefix != "" && !isPrefix(o.Prefix):
		return configError("--prefix %q: want a path as /locks, without a slash at its end", o.Prefix)
	case slices.Contains(o.Hosts, ""):
		return configError("--host is empty, as a variable that is not set: want a name, as locks.example.org")
	case slices.ContainsFunc(o.Hosts, isNoHost):
		return configError("--host %q: want a name or an address with or without a port, as locks.example.org: of several each has its own --host, and there is none for all",
			o.Hosts[slices.IndexFunc(o.Hosts, isNoHost)])
	case o.Drain < 0 || o.Drain > 10*time.Minute:
		return configError("--drain %v: want a duration from 0s to 10m", o.Drain)
	}
	return nil
}

func isNoHost(host string) bool {
	name, _ := hosts.Split(host)
	return name == ""
}

// isPrefix reports whether p is a path that stands in addresses as it is.
func isPrefix(p string) bool {
	for _, c := range []byte(p) {
		if !isAlphanumeric(c) && !strings.ContainsRune("/-._~", rune(c)) {
			return false
		}
	}
	return p[0] == '/' && p != "/" && path.Clean(p) == p
}

// open reports whether nobody needs a credential.
func (o *Options) open() bool { return o.TokenFile == "" && o.ClientCA == "" }

// secure reports whether browsers reach the server by https.
func (o *Options) secure() bool { return o.TLSCert != "" || o.BehindTLSProxy }

// guarded refuses to listen where a stranger could see the locks, or read a token on its way. at is
// nil before the address is known exactly; it is called again with that of the socket.
func (o *Options) guarded(listen string, at net.Addr) error {
	switch local := isLocal(listen, at); {
	case local:
		return nil
	case o.open():
		return configError("%s can be reached from other machines, and nothing says who may: want --token-file, or --client-ca with --tls-cert and --tls-key; "+
			"or a loopback address, as %s, or a socket, as unix:/run/interlock/serve", listen, DefaultListen)
	case !o.secure():
		return configError("%s can be reached from other machines, and tokens without TLS can be read on their way: want --tls-cert and --tls-key, "+
			"or --behind-tls-proxy where a proxy speaks TLS for this server", listen)
	}
	return nil
}

// isLocal reports whether only processes of this machine can reach an address: a Unix socket, or
// one of loopback. Of names only localhost is known to be that.
func isLocal(listen string, at net.Addr) bool {
	switch at := at.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return at.IP.IsLoopback()
	}
	if strings.HasPrefix(listen, unixScheme) {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
