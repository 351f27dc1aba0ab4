package redlock

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Options of a [Driver].
type Options struct {
	// NodeTimeout is how long one master may take for one answer; a session takes a third of its
	// TTL where that is less. A master that takes longer counts as one that did not answer. Default
	// 500 ms.
	NodeTimeout time.Duration

	// MaxTTL is the longest TTL that a session may have, from 100 ms to a day; default 1 min.
	// Programs with the same masters must agree on it: a master that comes back without its memory
	// has no vote for as long, and a set is in use for three times as long.
	MaxTTL time.Duration

	// Shared says that Redlock clients of other makes use the same names, so that a line of ours
	// leaves them a gap at every 32nd handoff and once a second. Otherwise gaps are left for a
	// minute after such a client was seen holding.
	Shared bool

	Logger *slog.Logger // told when a master loses its vote, when it has it again, and of one that evicts keys; default slog.Default()
}

const minTTL = 100 * time.Millisecond

// longest is what MaxTTL may be at most: a set of masters with a larger one could hardly be given
// up for another one.
const longest = 24 * time.Hour

// Default values of Options.
const (
	DefaultNodeTimeout = 500 * time.Millisecond
	DefaultMaxTTL      = time.Minute
)

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	if options.NodeTimeout <= 0 {
		options.NodeTimeout = DefaultNodeTimeout
	}
	if options.MaxTTL <= 0 {
		options.MaxTTL = DefaultMaxTTL
	}
	options.MaxTTL = options.MaxTTL.Truncate(time.Millisecond)
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	return options
}

// check refuses options that cannot be kept, before any master has them on record.
func (o Options) check() error {
	if o.MaxTTL < minTTL || o.MaxTTL > longest {
		return fmt.Errorf("redlock: MaxTTL %v: want %v to %v: %w", o.MaxTTL, minTTL, longest, driver.ErrRefused)
	}
	return nil
}
