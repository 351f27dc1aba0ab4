package interlock

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/local"
)

// Feature names what a store may promise, for Options.Require.
type Feature = driver.Feature

// The features that can be required.
const (
	Ordered      = driver.Ordered      // claims are granted in the order in which they came
	Shared       = driver.Shared       // read locks
	Counted      = driver.Counted      // semaphores
	Mixed        = driver.Mixed        // mutex, write and read locks of one name exclude each other
	Events       = driver.Events       // waiters are told, they do not ask
	Expires      = driver.Expires      // the locks of a dead process go
	Fenced       = driver.Fenced       // fencing tokens
	DurableFence = driver.DurableFence // fencing tokens that grow over restarts of the store
)

// Options configures a client. The zero value of each field means its default.
type Options struct {
	// Owner says who, for people. Default: host/program/pid.
	Owner string

	// TTL is how long a lock outlives a process that stopped renewing it. Default: 15 s, or what
	// the store keeps that is nearest to it. Leases are renewed about three times in it; a single
	// lock can have its own by the option TTL. Where the store keeps locks for less than half of
	// what was chosen, or for more than twice that, the log says so, and Lease.Until.
	TTL time.Duration

	// Grace is how long, at least, from the end of a lease's context until anybody else can get in.
	// Default: TTL/10, at least 2 ms, at most TTL/3. A single lock can have its own by the option
	// Grace, and needs one where it has a TTL of its own that this does not go with.
	Grace time.Duration

	// Idle is how long a session without locks is kept open. Default: 1 min.
	Idle time.Duration

	// Patience is how long the store may answer nothing, from the first request on that goes
	// unanswered, before Lock returns ErrUnavailable. Default: TTL. It is also how long Open tries;
	// there the default is 15 s, or TTL if that is longer.
	Patience time.Duration

	// MaxWaiters is how many goroutines may wait for one name in this client. Default: 10,000.
	MaxWaiters int

	// Require makes New fail, naming what is missing, on a store that lacks one of these.
	Require Feature

	// FenceBase is added to every token of the store, for one that takes the place of another with
	// larger tokens: what they protect has seen those. It wants to be the same in all programs, and
	// never smaller than it was: see driver.WithFenceBase and docs/fencing.md. In a store's URL it
	// is the parameter fence_base. At most 2⁵²; no store that draws no tokens, or raw ones, takes
	// it.
	FenceBase uint64

	// Logger hears of losses, of recoveries, of a store that keeps another TTL, and of leases that
	// were dropped without Release. Default: slog.Default(). A handler that blocks holds up no
	// lease and no renewal: it is told from a goroutine of its own, in order, and where it falls
	// behind by more than 256 reports it is told how many were omitted.
	Logger *slog.Logger

	// Tracer is told of waits, holds and renewals. One that blocks holds up whoever locks or
	// releases, and no lease.
	Tracer Tracer
}

// The defaults of Options and of the locks.
const (
	defaultTTL        = 15 * time.Second
	defaultIdle       = time.Minute
	defaultMaxWaiters = 10_000
	minGrace          = 2 * time.Millisecond
)

// chosen returns o without defaults, or an error that says what can be on no store.
func (o *Options) chosen() (opts Options, _ error) {
	if o != nil {
		opts = *o
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"TTL", opts.TTL}, {"Grace", opts.Grace}, {"Idle", opts.Idle}, {"Patience", opts.Patience}} {
		if d.value < 0 {
			return opts, fmt.Errorf("interlock: Options.%s is %v: want a positive duration, or 0 for the default", d.name, d.value)
		}
	}
	if opts.MaxWaiters < 0 {
		return opts, fmt.Errorf("interlock: Options.MaxWaiters is %d: want a positive number, or 0 for the default", opts.MaxWaiters)
	}
	return opts, nil
}

// withDefaults returns o with its defaults, and the settings of a lock without options, or an error
// that says what cannot be.
func (o *Options) withDefaults(traits driver.Traits) (opts Options, s settings, err error) {
	if opts, err = o.chosen(); err != nil {
		return opts, s, err
	}
	if missing := opts.Require &^ traits.Has(); missing != 0 {
		return opts, s, fmt.Errorf("interlock: this store lacks what Options.Require asks for: %v", missing)
	}
	if opts.TTL == 0 {
		opts.TTL = max(defaultTTL, traits.MinTTL)
		if traits.MaxTTL > 0 {
			opts.TTL = min(opts.TTL, traits.MaxTTL)
		}
	}
	opts.Idle = cmp.Or(opts.Idle, defaultIdle)
	opts.Patience = cmp.Or(opts.Patience, opts.TTL)
	opts.MaxWaiters = cmp.Or(opts.MaxWaiters, defaultMaxWaiters)
	if opts.Owner == "" {
		opts.Owner = defaultOwner()
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s = opts.settings()
	err = s.check(traits)
	return opts, s, err
}

// settings are those of a lock before its options and check.
func (o *Options) settings() settings {
	return settings{ttl: o.TTL, want: local.Request{Grace: o.Grace}}
}

// LockOption is one choice for one lock.
type LockOption func(*settings)

// settings are the choices for one lock.
type settings struct {
	want             local.Request // of each Lock, but for its kind, its weight and its limit
	ttl              time.Duration
	ownTTL, ownGrace bool // by an option of the lock
	isolated         bool
	reentrant        bool

	err error // the first impossible choice
}

// Wait bounds the waiting: after d without the lock, Lock returns ErrHeld, or ErrUnavailable if the
// store has not answered by then. Wait(0) tries once and does not wait.
func Wait(d time.Duration) LockOption {
	return func(s *settings) {
		s.want.Wait, s.want.Try = d, d == 0
		if d < 0 {
			s.refuse(fmt.Errorf("wait of %v: want 0 or a positive duration", d))
		}
	}
}

// TTL is how long this lock outlives a process that stopped renewing it, instead of Options.TTL.
// Locks of a client with the same TTL share a session.
func TTL(d time.Duration) LockOption {
	return func(s *settings) {
		s.ttl, s.ownTTL = d, true
		if d <= 0 {
			s.refuse(fmt.Errorf("TTL of %v: want a positive duration", d))
		}
	}
}

// Grace is how long, at least, from the end of the lease's context until anybody else can get in:
// the time in which the work must stop. Between 2 ms and a third of the TTL: what is left must have
// room for the store's answer and for two renewals.
func Grace(d time.Duration) LockOption {
	return func(s *settings) {
		s.want.Grace, s.ownGrace = d, true
		if d <= 0 {
			s.refuse(fmt.Errorf("grace of %v: want a positive duration", d))
		}
	}
}

// MinHold keeps the lock until d after it was granted, however soon it is released: for jobs that
// finish faster than clocks agree. Release returns at once; Shutdown and Close wait for it.
func MinHold(d time.Duration) LockOption {
	return func(s *settings) {
		s.want.MinHold = d
		if d < 0 {
			s.refuse(fmt.Errorf("minimum hold of %v: want 0 or a positive duration", d))
		}
	}
}

// MaxHold releases the lock d after it was granted, whether or not Release was called; the lease's
// context ends a grace earlier, with ErrLost wrapping ErrMaxHold.
func MaxHold(d time.Duration) LockOption {
	return func(s *settings) {
		s.want.MaxHold = d
		if d <= 0 {
			s.refuse(fmt.Errorf("maximum hold of %v: want a positive duration", d))
		}
	}
}

// Isolated gives each lease of this lock a session and a claim of its own, which no other goroutine
// shares.
func Isolated() LockOption { return func(s *settings) { s.isolated = true } }

// Reentrant lets a context that already holds the name lock it again: the new lease shares the
// claim, which leaves with the last of them. Without it that is ErrDeadlock. A holder for writing
// may so lock for reading; a holder for reading may not lock for writing. The new lease has the
// TTL, grace, note and limits of the one that is there: a lock that was given others is refused,
// with an error that matches errors.ErrUnsupported.
func Reentrant() LockOption { return func(s *settings) { s.reentrant = true } }

// Note is shown to people who ask who holds the lock, and why. At most 256 bytes.
func Note(note string) LockOption {
	return func(s *settings) {
		s.want.Note = note
		if len(note) > 256 || !utf8.ValidString(note) {
			s.refuse(fmt.Errorf("note of %d bytes: want at most 256 bytes of UTF-8", len(note)))
		}
	}
}

func (s *settings) refuse(err error) {
	if s.err == nil {
		s.err = err
	}
}

// check fills in the grace and returns what cannot be, for a store with these traits.
func (s *settings) check(t driver.Traits) error {
	if s.err != nil {
		return s.err
	}
	if s.ttl < t.MinTTL || t.MaxTTL > 0 && s.ttl > t.MaxTTL {
		wants := fmt.Sprintf("%v or more", t.MinTTL)
		if t.MaxTTL > 0 {
			wants = fmt.Sprintf("between %v and %v", t.MinTTL, t.MaxTTL)
		}
		return fmt.Errorf("TTL of %v: this store wants %s", s.ttl, wants)
	}
	w, longest := &s.want, local.LongestGrace(s.ttl)
	if w.Grace == 0 {
		w.Grace, w.AnyGrace = min(max(s.ttl/10, minGrace), longest), true
	}
	switch {
	case w.Grace < minGrace || w.Grace > longest:
		return fmt.Errorf("grace of %v with a TTL of %v: want %v ≤ grace ≤ TTL/3 = %v, or there is no time left to renew", w.Grace, s.ttl, minGrace, longest)
	case w.MaxHold > 0 && w.MaxHold <= w.Grace:
		return fmt.Errorf("maximum hold of %v with a grace of %v: want it longer, because the lease's context ends a grace before it", w.MaxHold, w.Grace)
	case w.MaxHold > 0 && w.MinHold > w.MaxHold:
		return fmt.Errorf("minimum hold of %v above the maximum of %v", w.MinHold, w.MaxHold)
	}
	return nil
}

// MaxName is the longest name in bytes.
const MaxName = 1024
