package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/hosts"
	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// Store is a store that is shown.
type Store struct {
	Name   string        // in addresses, too: 1 to 64 of a–z A–Z 0–9 . _ -
	URL    string        // shown through driver.Redact
	Driver driver.Driver // not closed by the handler; without driver.Inspector nothing is seen
}

var storeName = lazyregexp.New(`^[A-Za-z0-9._-]{1,64}$`)

// check says what is wrong with the store.
func (s Store) check() error {
	switch {
	case !storeName.MatchString(s.Name):
		return fmt.Errorf("web: a store is called %.100q: want 1 to 64 of a–z A–Z 0–9 . _ -", s.Name)
	case s.Driver == nil:
		return fmt.Errorf("web: store %q has no driver", s.Name)
	}
	return nil
}

// Options are what a [Handler] does, and for whom. The zero value shows everything to who reaches
// it over a loopback name, and breaks nothing.
type Options struct {
	// Prefix is the path below which the handler is mounted, as "/locks"; "" is the root. It does
	// not matter whether a proxy or http.StripPrefix takes it away before the handler is asked.
	Prefix string

	// Hosts are the hosts by which browsers reach the page, with or without a port:
	// "locks.example.org". A request for another one is refused, since it may come from a page
	// whose name was bound to this machine. Names and addresses of loopback are always allowed.
	Hosts []string

	// Authorize says who makes a request and what he may do. It may return [ErrUnauthenticated] or
	// [ErrForbidden]; another error is a failure to find out. It is asked again every 15 s of a
	// stream. It is called concurrently. Without it everybody may read, and nobody may break.
	Authorize func(*http.Request) (Principal, error)

	// History is how many events of the names are kept in all, 64 of each name at most; those of
	// the names that changed least recently go first. Default 65536, which take some 20 MB.
	History int

	// Streams is how many streams there may be at the same time; one principal has half of them at
	// most. Default 1000.
	Streams int

	// Logger gets one line for each break that was asked for, with who, what, why and the outcome.
	// Default slog.Default().
	Logger *slog.Logger
}

// complete checks the options and fills in the defaults.
func (o *Options) complete() error {
	p := o.Prefix
	if p != "" && (p[0] != '/' || path.Clean(p) != p || p == "/" || strings.ContainsAny(p, "%?#\"\\ ")) {
		return fmt.Errorf("web: Options.Prefix %q: want a path as /locks, without a slash at its end and without escapes, or none", p)
	}
	for _, host := range o.Hosts {
		if name, _ := hosts.Split(host); name == "" {
			return fmt.Errorf("web: Options.Hosts: %q: want a host with or without a port, as locks.example.org or 10.0.0.5:7070", host)
		}
	}
	switch {
	case o.History < 0:
		return fmt.Errorf("web: Options.History %d: want how many events are kept, or 0 for the default", o.History)
	case o.History == 0:
		o.History = 1 << 16
	}
	switch {
	case o.Streams < 0:
		return fmt.Errorf("web: Options.Streams %d: want how many there may be at the same time, or 0 for the default", o.Streams)
	case o.Streams == 0:
		o.Streams = 1000
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// principal returns who makes a request, or a problem.
func (o *Options) principal(r *http.Request) (Principal, error) {
	if o.Authorize == nil {
		return Principal{Read: []string{""}}, nil
	}
	who, err := o.Authorize(r)
	switch {
	case err == nil:
		return who, nil
	case errors.Is(err, ErrUnauthenticated):
		return who, problemOf("unauthenticated", "want one that is not over")
	case errors.Is(err, ErrForbidden):
		return who, problemOf("forbidden", "%s is not allowed here", who.label())
	}
	return who, fmt.Errorf("web: Options.Authorize: %w", err)
}
