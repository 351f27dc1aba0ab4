package etcdlock

import (
	"cmp"
	"log/slog"
	"time"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Namespace begins every key, such as "locks/". Without one the key of a lock is what etcdctl
	// lock and package concurrency make of the same name.
	Namespace string

	// Timeout is how long the store may take for one answer, at most the TTL of a session; default
	// 3 s. A request without an answer leaves its outcome open: the core then releases the claim
	// until that is certain.
	Timeout time.Duration

	Logger *slog.Logger // default slog.Default()
}

const defaultTimeout = 3 * time.Second

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	options.Timeout = cmp.Or(max(options.Timeout, 0), defaultTimeout)
	options.Logger = cmp.Or(options.Logger, slog.Default())
	return options
}
