package zklock

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Path is the node under which the locks are, as /locks: Curator's namespace. It has to be
	// there. Default: the root, so that the lock "orders" is the node /orders.
	Path string

	// Timeout is how long the servers may take for one answer, at most the time of a session;
	// default 3 s. A request without an answer leaves its outcome open: the core then releases the
	// claim until that is certain.
	Timeout time.Duration

	// SemaphoreMutex has mutexes written as Curator's InterProcessSemaphoreMutex, a semaphore of
	// one. Such a mutex shares no name with read and write claims.
	SemaphoreMutex bool

	// Layout is whose nodes are written; default [Curator].
	Layout Layout

	// User and Password are said to the servers over each connection, by ZooKeeper's scheme digest,
	// or by SASL's DIGEST-MD5, in which the password does not go over the wire.
	User, Password string
	SASL           bool

	// ACL says who may read and write what is made here. Default: with a User, [CreatorsOnly]; else
	// [World].
	ACL ACL

	// TLS encrypts connections; nil does not. Its certificate is the client's.
	TLS *tls.Config

	// Dial connects to a server; default by TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Layout is the nodes that one library writes.
type Layout string

// The layouts.
const (
	Curator Layout = "curator"
	Kazoo   Layout = "kazoo" // kazoo's Lock, ReadLock and WriteLock, in Python; it has no permits here
)

// An ACL is an access list.
type ACL string

// The access lists.
const (
	World        ACL = "world" // anybody
	CreatorsOnly ACL = "auth"  // clients that have logged in as the one that made the node
)

const defaultTimeout = 3 * time.Second

func (o *Options) withDefaults() (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	switch {
	case options.Layout != "" && options.Layout != Curator && options.Layout != Kazoo:
		return options, fmt.Errorf("zklock: layout %q: want curator or kazoo: %w", options.Layout, driver.ErrRefused)
	case options.Layout == Kazoo && options.SemaphoreMutex:
		return options, fmt.Errorf("zklock: a mutex as a semaphore in kazoo's layout: want Curator's: %w", driver.ErrRefused)
	case options.ACL != "" && options.ACL != World && options.ACL != CreatorsOnly:
		return options, fmt.Errorf("zklock: access list %q: want world or auth: %w", options.ACL, driver.ErrRefused)
	case options.User == "" && (options.Password != "" || options.SASL):
		return options, fmt.Errorf("zklock: a password, or SASL, without a user: want both: %w", driver.ErrRefused)
	case strings.Contains(options.User, ":") && !options.SASL:
		return options, fmt.Errorf("zklock: a user with a colon in its name: the scheme digest cannot have that: %w", driver.ErrRefused)
	}
	options.Timeout = cmp.Or(max(options.Timeout, 0), defaultTimeout)
	said := options.Path
	options.Path = strings.TrimSuffix(said, "/")
	if p := options.Path; p != "" && (p[0] != '/' || path.Clean(p) != p || p == "/" || p == "/zookeeper" || strings.HasPrefix(p, "/zookeeper/")) {
		return options, fmt.Errorf("zklock: path %q: want one as /locks, without . and .. and empty parts, and not below /zookeeper: %w", said, driver.ErrRefused)
	}
	for _, r := range options.Path {
		if r != '/' && r != '%' && !plain(r) {
			return options, fmt.Errorf("zklock: path %q has the character %U, which a node's name cannot have: %w", options.Path, r, driver.ErrRefused)
		}
	}
	return options, nil
}
