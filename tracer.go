package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/fault"
)

// Tracer is told what a client does, in the manner of pgx: a start returns the context that its end
// receives. The methods are called by the goroutine that locks or releases, or by one that tells of
// losses and renewals in order, at most 256 behind; they must not block, and may be called
// concurrently. Each WaitStart is followed by one WaitEnd, and each WaitEnd without an error by one
// HoldEnd when that lease ends; of a lease that is lost as soon as it is granted, HoldEnd may be
// told first. A panic goes to whoever locks or releases, and leaves no lock held behind it. The
// contrib modules interlockprom and interlockotel make metrics and spans of this.
type Tracer interface {
	// WaitStart: somebody asks for a lock. Of nil, the context that it was given goes on.
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
	Op, Name string // of several names the first
	Kind     driver.Kind
}

// WaitEnd is how it went.
type WaitEnd struct {
	Op, Name string
	Kind     driver.Kind
	Waited   time.Duration
	Fence    uint64
	Passed   bool // from another goroutine of this process, without asking the store
	Result   Result
	Err      error // nil when it was granted
}

// Result is how a wait ended, as one word of a closed set, which may be a label.
type Result string

// The results of a wait.
const (
	Granted     Result = "granted"     // by the store, or by sharing what this process has
	Passed      Result = "passed"      // on by another goroutine of this process
	Held        Result = "held"        // somebody else has it, and the call was not to wait, or no longer
	TimedOut    Result = "timeout"     // the deadline of its context came while somebody else had it
	Cancelled   Result = "cancelled"   // its context was cancelled
	Unavailable Result = "unavailable" // the store did not answer, or failed: ErrUnavailable
	Failed      Result = "error"       // anything else: refused, broken, closed, a deadlock, too many waiters
)

// HoldEnd is the end of a lease.
type HoldEnd struct {
	Name   string // of several the first
	Kind   driver.Kind
	Held   time.Duration // until Release was called, or the loss
	Fence  uint64
	Reason Reason // why it was lost; empty when it was not
	Err    error  // nil when it was released, ErrUncertain when the store has not confirmed that, and else matches ErrLost
}

// Reason is why a lease was lost, as one word of a closed set, which may be a label.
type Reason string

// The reasons of a loss.
const (
	LostExpired  Reason = "expired"  // the store failed or did not answer until the end of trust
	LostStalled  Reason = "stalled"  // it was not renewed in time although the store did not fail: this process was stopped, or starved
	LostSession  Reason = "session"  // the store ended the session
	LostGone     Reason = "gone"     // the store no longer has the claim
	LostBroken   Reason = "broken"   // an operator took it away
	LostMaxHold  Reason = "max_hold" // it was held for its MaxHold
	LostShutdown Reason = "shutdown" // the client was closed while it was held
)

// Renewed is one renewal of a session.
type Renewed struct {
	Claims int           // in line, held or waiting
	Leases int           // that are held by these
	Took   time.Duration // until the store answered
	Slack  time.Duration // that the leases had left until the end of trust when it did, of the one with the least; 0 where there are none
	Trust  time.Duration // that a lease has from then on, as far as this session goes: less the longest grace
	Err    error
}

// Late reports whether the store has answered, but when more than half of the trust of a lease was
// over. A renewal begins after a third of it: an earlier one failed, the store was slow, or this
// process had no time to ask.
func (r Renewed) Late() bool { return r.Err == nil && r.Leases > 0 && r.Slack < (r.Took+r.Trust)/2 }

// The names under which these things are measured and labelled everywhere: seconds as histograms,
// totals as counters, waiters as a gauge. A lock's name is no label by default, because names may
// be without number.
const (
	MetricWaitSeconds       = "interlock_wait_seconds"        // labels kind, result
	MetricHoldSeconds       = "interlock_hold_seconds"        // label kind
	MetricRenewSlackSeconds = "interlock_renew_slack_seconds" // Renewed.Slack, where there are leases
	MetricRenewalsTotal     = "interlock_renewals_total"      // label result: ok, late, error
	MetricLostTotal         = "interlock_lost_total"          // label reason
	MetricUncertainTotal    = "interlock_uncertain_total"     // releases that were not confirmed
	MetricWaiters           = "interlock_waiters"
	MetricHolders           = "interlock_holders"
	MetricPassesTotal       = "interlock_passes_total"

	AttributeName   = "interlock.name"
	AttributeKind   = "interlock.kind"
	AttributeFence  = "interlock.fence"
	AttributeOwner  = "interlock.owner"
	AttributeStore  = "interlock.store"
	AttributeResult = "interlock.result"
	AttributeReason = "interlock.reason"
)

// waitStarts tells a tracer that a wait starts, and returns its context, or ctx where it has none
// of its own.
func waitStarts(ctx context.Context, t Tracer, d WaitStart) context.Context {
	if own := t.WaitStart(ctx, d); own != nil {
		return own
	}
	return ctx
}

// reasonOf is why a lease was lost that ended with err, or empty. What the store failed with last
// is in the error of a lease that was not renewed, and is not its reason: so that is asked first.
func reasonOf(err error) Reason {
	switch {
	case !errors.Is(err, ErrLost):
		return ""
	case errors.Is(err, ErrMaxHold):
		return LostMaxHold
	case errors.Is(err, ErrUnavailable):
		return LostExpired
	case errors.Is(err, fault.ErrStalled):
		return LostStalled
	case errors.Is(err, ErrClosed):
		return LostShutdown
	case errors.Is(err, driver.ErrBroken):
		return LostBroken
	case errors.Is(err, driver.ErrSessionLost):
		return LostSession
	}
	return LostGone
}
