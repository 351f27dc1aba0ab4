package local

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
	"github.com/interlock-go/interlock/internal/keepalive"
)

// Config is what the pools of a client have in common. None of its functions may wait: they are
// called with the mutex of a pool held.
type Config struct {
	Clock      *clock.Clock
	Owner      driver.Owner
	Patience   time.Duration // how long a waiter bears the store's silence
	MaxWaiters int           // for one name
	NoPassing  bool          // a grant has one token, so its claim is never passed on

	Holds *atomic.Int64              // counts the holds: from the grant until the store has answered the release
	Left  *atomic.Int64              // the clock.Instant at which the last of them left its line
	Ended func()                     // is called when the store has answered the release of a hold
	Held  func(*driver.Holder) error // is the error of a waiter who is refused since somebody has the name
	Log   func(level slog.Level, what string, args ...any)
}

// host is what the lines of a pool share. One mutex guards it, and all of them; nothing waits while
// holding it, and neither the store nor the user's code is called.
type host struct {
	*Config
	ttl      time.Duration
	isolated bool // for one lease only
	actions  actions

	mu      sync.Mutex
	silence *keepalive.Silence
	closing error // why nobody may enter any more
}

// actions is what events in a line lead to. It begins what is to be done and does not wait for it.
// The mutex is held.
type actions interface {
	// acquireAfter sends the claim from a goroutine of its own, after a pause.
	acquireAfter(c *claim, pause time.Duration)

	// releaseAfter takes the hold out of its line when d is over.
	releaseAfter(h *Hold, d time.Duration) *time.Timer

	// removeIfIdle drops the line if nobody is left in it.
	removeIfIdle(l *line)
}
