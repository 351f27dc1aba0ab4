package redlock

import (
	"log/slog"
	"time"
)

// Options of a [Driver].
type Options struct {
	// NodeTimeout is how long one master may take for one answer; a session takes a third of its TTL where that is less.
	// A master that takes longer counts as one that did not answer. Default 500 ms.
	NodeTimeout time.Duration

	// MaxTTL is the longest TTL that a session may have; default 1 min. Programs with the same masters must agree on it: a
	// master that comes back without its memory has no vote for as long.
	MaxTTL time.Duration

	// Shared says that Redlock clients of other makes use the same names, so that a line of ours leaves them a gap at every
	// 32nd handoff and once a second. Otherwise gaps are left for a minute after such a client was seen holding.
	Shared bool

	Logger *slog.Logger // told when a master loses its vote, and when it has it again; default slog.Default()
}

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
