package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// unixScheme is how the address of a Unix socket begins.
const unixScheme = "unix:"

// listen returns the sockets of systemd, or the one that the options name.
func (o *Options) listen() ([]net.Listener, error) {
	passed, err := activated(os.Getenv, func(name string) { _ = os.Unsetenv(name) })
	if err != nil {
		return nil, err
	}
	closeAll := func(err error) ([]net.Listener, error) {
		for _, l := range passed {
			_ = l.Close()
		}
		return nil, err
	}
	if len(passed) > 0 {
		if o.Listen != "" {
			return closeAll(configError("--listen %s, and systemd passes sockets: want one of them", o.Listen))
		}
		for _, l := range passed {
			if err := o.guarded("the socket "+l.Addr().String()+" of systemd", l.Addr()); err != nil {
				return closeAll(err)
			}
		}
		return passed, nil
	}
	at := o.Listen
	if at == "" {
		at = DefaultListen
	}
	path, ofUnix := strings.CutPrefix(at, unixScheme)
	if _, _, wrong := net.SplitHostPort(at); wrong != nil && !ofUnix {
		return nil, configError("--listen %q: want HOST:PORT, as %s, or unix:PATH", at, DefaultListen)
	}
	if err := o.guarded(at, nil); err != nil { // before anything listens
		return nil, err
	}
	var l net.Listener
	if ofUnix {
		l, err = listenUnix(path)
	} else {
		l, err = net.Listen("tcp", at)
	}
	if err != nil {
		if errors.As(err, new(*net.AddrError)) || errors.As(err, new(*net.DNSError)) || errors.As(err, new(*ConfigError)) {
			return nil, &ConfigError{fmt.Errorf("cannot listen: %w", err)} // the address is none
		}
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	passed = []net.Listener{l}
	if err := o.guarded(at, l.Addr()); err != nil { // by /etc/hosts localhost may be anything
		return closeAll(err)
	}
	return passed, nil
}

// listenUnix listens on a socket that only this user may connect to. It replaces one that nobody
// listens on any more.
func listenUnix(path string) (net.Listener, error) {
	if path == "" {
		return nil, configError("--listen unix: without a path: want unix:PATH, as unix:/run/interlock/serve")
	}
	if path[0] == '@' { // a name without a file has no mode: every user of the machine may connect
		return nil, configError("--listen unix:%s names no file, so that every user may connect: want unix:PATH, as unix:/run/interlock/serve", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		c, err := net.DialTimeout("unix", path, time.Second)
		switch {
		case err == nil:
			_ = c.Close()
			return nil, fmt.Errorf("%s: somebody listens there already", path)
		case errors.Is(err, syscall.ECONNREFUSED): // left behind by one that was killed
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	// The socket has its mode from the beginning: between bind and chmod another user could
	// connect.
	mask := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(mask)
	return l, err
}

// urlOf returns the URL by which a person reaches what listens at l.
func (o *Options) urlOf(l net.Listener) string {
	scheme := "http"
	if o.TLSCert != "" {
		scheme = "https"
	}
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return unixScheme + l.Addr().String()
	}
	host := a.String()
	if a.IP.IsUnspecified() { // no address to go to
		host = fmt.Sprintf("localhost:%d", a.Port)
	}
	return scheme + "://" + host + o.Prefix + "/"
}
