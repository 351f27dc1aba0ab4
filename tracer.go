package interlock

import (
	"context"
	"time"
)

// Tracer is told what a client does, in the manner of pgx: a start returns the context that its end receives. The
// methods are called by the goroutine that locks or releases, or by one that tells of losses and renewals in order, at most 256 behind;
// they must not block, and may be called concurrently.
type Tracer interface {
	// WaitStart: somebody asks for a lock.
	WaitStart(ctx context.Context, d WaitStart) context.Context
	// WaitEnd: it was granted, or not.
	WaitEnd(ctx context.Context, d WaitEnd)
	// HoldEnd: a lease was released or lost, whichever came first.
	HoldEnd(ctx context.Context, d HoldEnd)
	// Renewed: a session was renewed, or not.
	Renewed(ctx context.Context, d Renewed)
}

// WaitStart is what is known when somebody asks for a lock.
type WaitStart struct {
	Op, Name string
}

// WaitEnd is how it went.
type WaitEnd struct {
	Op, Name string
	Waited   time.Duration
	Fence    uint64
	Passed   bool  // from another goroutine of this process, without asking the store
	Err      error // nil when it was granted
}

// HoldEnd is the end of a lease.
type HoldEnd struct {
	Name  string
	Held  time.Duration
	Fence uint64
	Err   error // nil when it was released, else matches ErrLost
}

// Renewed is one renewal of a session.
type Renewed struct {
	Claims int           // in line, held or waiting
	Took   time.Duration // until the store answered
	Slack  time.Duration // trust that was left when it did
	Err    error
}

// The names under which these things are measured and labelled everywhere: seconds as histograms, totals as counters,
// waiters as a gauge. A lock's name is no label by default, because names may be without number.
const (
	MetricWaitSeconds       = "interlock_wait_seconds"
	MetricHoldSeconds       = "interlock_hold_seconds"
	MetricRenewSlackSeconds = "interlock_renew_slack_seconds"
	MetricLostTotal         = "interlock_lost_total" // label reason
	MetricWaiters           = "interlock_waiters"
	MetricPassesTotal       = "interlock_passes_total"

	AttributeName  = "interlock.name"
	AttributeFence = "interlock.fence"
	AttributeOwner = "interlock.owner"
)
