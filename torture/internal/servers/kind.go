//go:build linux || darwin

package servers

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// kind is what differs between the servers of one topology and those of another.
type kind interface {
	target

	url() string // of the store
	close() error

	// nodes returns the servers that keep data.
	nodes() []*servertest.Server

	// proxied returns the addresses that workers can reach over proxies: none where servers tell
	// clients of one another.
	proxied() []string

	// entries returns how many keys, rows or nodes the servers keep, without sessions whose time is
	// over and other things that go by themselves.
	entries(ctx context.Context) (int, error)

	// spare returns how much longer than a lease of ttl its record is at the servers, where they
	// count coarsely.
	spare(ttl time.Duration) time.Duration

	// tells reports whether the store says when it granted what is held.
	tells() bool
}

// usual has the answers of most kinds.
type usual struct{}

func (usual) lasts(string) time.Duration        { return 0 }
func (usual) recovers() bool                    { return false }
func (usual) spare(time.Duration) time.Duration { return 0 }
func (usual) tells() bool                       { return true }

// addrs returns the addresses of servers.
func addrs(all []*servertest.Server) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.Addr())
	}
	return out
}

// ofConnections reports whether the query of a store's URL asks for locks that live with
// connections.
func ofConnections(query string) bool {
	return strings.Contains(query, "technique=session") || strings.Contains(query, "technique=rowlock")
}
