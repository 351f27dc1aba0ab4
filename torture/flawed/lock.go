package flawed

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/internal/zk"
)

// grip is what a claim has at the server, if it has it.
type grip struct {
	key   string
	id    string // the claim's own, of which nobody else knows
	value string // what was stored at the key last
	limit int    // how many may hold it
	token int64  // of a lock that has them
	at    place  // of a lock with a line
}

// lock is the steps that a flaw is in. Each is one exchange with the server, except where the flaw
// is that it is two. What they report is whether the claim holds the key, or for release held it.
type lock interface {
	value(g *grip) string
	acquire(ctx context.Context, g *grip, ttl time.Duration) (bool, error)
	renew(ctx context.Context, g *grip, ttl time.Duration) (bool, error)
	release(ctx context.Context, g *grip) (bool, error)

	// valid is how long a renewal is trusted, from before it was sent. It took took.
	valid(ttl, took time.Duration) time.Duration
}

// place is where a claim stands in line.
type place struct {
	client *zk.Client // whose session keeps the node
	path   string
}
