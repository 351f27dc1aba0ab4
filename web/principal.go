package web

import (
	"errors"
	"slices"
	"strings"
)

// Principal is who makes a request, and what he may do with names that begin with one of these
// prefixes; "" is every name, nil none.
type Principal struct {
	Name        string
	Read, Break []string // who may break a name and not read it has to know the claim
}

// What [Options].Authorize may return. The first is answered by 401, the second by 403.
var (
	ErrUnauthenticated = errors.New("web: no valid credential came with the request")
	ErrForbidden       = errors.New("web: not allowed")
)

// reader may read every name. An error about one name is shown as to reader where the principal may
// read that name.
var reader = Principal{Read: []string{""}}

// label returns the principal as problems name it.
func (p Principal) label() string {
	if p.Name == "" {
		return "whoever asks"
	}
	return p.Name
}

// reason returns an error of a store as the principal may read it: there may be names in it, which
// are for those who may read all.
func (p Principal) reason(err error) string {
	if p.mayRead("") {
		return errorWords(err)
	}
	return "the reason may be read by those who may read every name"
}

// mayRead reports whether the principal may read a name; "" stands for all names.
func (p Principal) mayRead(name string) bool { return begins(name, p.Read) }

// mayBreak reports whether the principal may break claims of a name.
func (p Principal) mayBreak(name string) bool { return begins(name, p.Break) }

func begins(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
