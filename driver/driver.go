package driver

import (
	"context"
	"iter"
	"math"
	"os"
	"time"
)

// All is the weight and the limit of an exclusive claim, and the limit of a read claim.
const All = math.MaxInt32

// Kind says what a claim is for. The rule needs only weight and limit; a layout shared with other programs may write
// a mutex and a write lock differently and must know which it is.
type Kind uint8

// The kinds of claims.
const (
	Mutex  Kind = iota + 1 // weight All, limit All
	Write                  // weight All, limit All
	Read                   // weight 1, limit All
	Permit                 // weight w, limit n
)

// String returns the kind's name as it is shown to people and stored in records.
func (k Kind) String() string {
	switch k {
	case Mutex:
		return "mutex"
	case Write:
		return "write"
	case Read:
		return "read"
	case Permit:
		return "permit"
	}
	return "unknown"
}

// Exclusive reports whether a claim of this kind keeps everybody else out and so draws tokens.
func (k Kind) Exclusive() bool { return k == Mutex || k == Write }

// A Driver connects the core to one store. All methods may be called concurrently.
type Driver interface {
	// Open starts a session. It must not return before the store has acknowledged it.
	Open(ctx context.Context, s Spec) (Session, error)

	// Traits says what the store, as it was opened, promises. It does not change afterwards.
	Traits() Traits

	// Close ends the driver's sessions and everything the driver opened itself; a client that the user supplied
	// stays open. It returns in bounded time when ctx has ended.
	Close(ctx context.Context) error
}

// Spec describes a session.
type Spec struct {
	ID    string        // unique, from [NewID]; a secret of its owner
	Owner Owner         // who, for people
	TTL   time.Duration // the liveness asked for; what was given is Session.Valid
}

// Claim is one place in the line of one name.
type Claim struct {
	Name string

	// ID is 128 random bits, the owner's secret: in most stores who knows it can release the claim, from any session. Every
	// call is idempotent by it, and a new attempt has a new one, so that a late reply or release of an old attempt can hit
	// nothing else.
	ID string

	Kind          Kind
	Weight, Limit int  // the rule's numbers; 1 ≤ Weight ≤ Limit ≤ All
	Queue         bool // if it cannot be held now, stay in line; otherwise leave no trace

	Note   string // of the holder, for people: any UTF-8 of up to 256 bytes
	Passes int    // how often this client has passed the name on inside its process so far, for people
}

// Grant is the state of a claim.
type Grant struct {
	Held bool

	// Fence is the lowest of the [Stride] tokens that this grant reserved, or the only one where [Traits].Single says so;
	// 0 while waiting, for readers and for permits. Asked again, the same claim answers the same token.
	Fence uint64

	// Holder is who is in the way of a claim that is not held, where the store can say so without a further request.
	Holder *Holder
}

// A Session is one liveness and its claims.
//
// All methods may be called concurrently, Renew at any time; for one claim the core makes one call at a time, except that
// it may end a Wait through its context. Each call returns promptly when its context ends.
//
// For one ID no Acquire is ever sent after a Release: a client library's own retry of a request must be switched off. The
// driver holds a Release back until the last Acquire was answered, or sends it behind it on a connection that keeps
// order. To close the connection is enough only where the server then drops what it has not begun; elsewhere the request
// is left running when its context ends, and the Release waits for its answer.
type Session interface {
	// Valid is how long the session can be trusted from the start of Open on: what the store gave, which may be
	// less than Spec.TTL, less rounding, clamps and the drift of clocks. It does not run down: asked later it is no less. A store with one liveness for all claims that
	// renews it along with an Acquire only when the last renewal is older than some time takes that time off, too. After
	// a Renew what its answer says takes the place of this, also where it is called Valid below.
	Valid() time.Duration

	// Acquire puts c into the line of its name, or finds it there, and returns its state. As other claims see it, it is
	// one atomic step, and it never waits for them. Answered without an error it also renews c, also in a session that
	// nobody has renewed for long: counted from the start of this call, a held claim stays held for Valid, and a waiting
	// one keeps its place as long as the store sees its process. A session that the store has ended meanwhile answers
	// ErrSessionLost, and c stands nowhere. A claim without Queue that cannot be held leaves nothing behind and changes
	// no token that anybody holds; there may be a gap in the tokens. A claim that was in line, as far as this driver was
	// told, and is gone is not put there again: it answers ErrBroken or ErrGone, and so does Wait.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Wait returns the state of c, which was acquired with Queue, and may block until that state may have changed or
	// ctx ends. It may return early with a claim that is still waiting, but not without end: the core pauses then. It returns when the
	// claim is lost or broken, with ErrGone, ErrBroken or ErrSessionLost. When it returns an error the claim keeps its
	// place unless the error says otherwise. A claim that it returns as held can be trusted for Valid from the start of
	// its Acquire, or of the last answered Renew that began after that Acquire was answered: where Renew cannot reach a claim that waits, as on a
	// connection that blocks, the driver renews it before Wait returns it.
	Wait(ctx context.Context, c Claim) (Grant, error)

	// Release takes c out of the line, held or waiting, and lets in whoever is next. It reports whether c was held
	// until now: false for a claim that waited, had expired, was broken, even if only marked so far, or was never there.
	// Releasing a claim of which nothing is known is not an error. After a Release of unknown outcome, false says nothing:
	// the first one may have released it.
	Release(ctx context.Context, c Claim) (held bool, err error)

	// Renew renews the session with every claim in line, held or waiting, and reconciles both sides: it reports claims
	// that are gone, moves claims whose grant was not noticed and renews them as held ones, and drops claims that stand
	// in the store for this session although they were released here. A broken claim is not renewed where the store has
	// a time for each claim. It never queues behind claims or behind another process's writes and returns in bounded time
	// while any other process is stopped at any instruction.
	Renew(ctx context.Context) (Renewal, error)

	// Close releases every claim of the session, handing over at once, and ends it. It is called once for every session
	// that was opened, also for one that the store has ended, and also while other calls are under way: a Wait does not hold
	// it up. Nothing is asked of the store for the session afterwards: a call that begins then answers ErrSessionLost, or
	// ErrNotSent where its driver is closed, and Release may also answer that c was not held, and Close nil.
	Close(ctx context.Context) error
}

// Renewal is the answer to a Renew.
type Renewal struct {
	// Valid is how long the session can be trusted from the start of this call on.
	Valid time.Duration

	// Lost has the claims that are no longer in line although nobody here released them, and those that are
	// broken: they stand in line until they are released or their time is over, and must be given up. A claim that is
	// broken is in every answer until its Release, since an answer may not arrive. A claim that is not in line because its
	// Acquire, its Release or its Requeue is under way is not in the answer.
	Lost []Loss
}

// Loss is a claim that its session has lost, and why.
type Loss struct {
	ID string

	// Err matches ErrBroken where an operator took the claim away, and else ErrGone. A held claim that was marked is named as broken
	// while the mark stands. Of one that left the line at once, by a Break with now or while it waited, the store may
	// know no more than that it is gone.
	Err error
}

// Requeuer is a [Session] that can leave a line and stand in it again in one step.
type Requeuer interface {
	// Requeue releases old and acquires next, a claim of the same name, at the end of the line. As other claims see it, both are
	// one atomic step: who waits stands before next, and a claim that comes meanwhile finds old or next in its way. It reports
	// of old what Release would; if old is gone or broken, next is acquired all the same. Answered without an error it renews
	// next as Acquire does. After an error both are to be released. Without it the core calls Release and then Acquire.
	Requeue(ctx context.Context, old, next Claim) (g Grant, held bool, err error)
}

// LossNotifier is a [Session] whose store says by itself that a claim is gone or broken.
type LossNotifier interface {
	// Lost yields such claims, each with its reason; the channel is closed when the session is lost as a whole. It always
	// returns the same channel.
	Lost() <-chan Loss
}

// Nudger is a [Session] that can be told by others to look at its state.
type Nudger interface {
	// Nudge yields a value when Renew should be called now. It always returns the same channel.
	Nudge() <-chan struct{}
}

// Inheritor is a [Session] whose liveness is bound to open files, so that a dead process is not yet a dead job.
type Inheritor interface {
	// Inherit returns the files that a child acting for the holder must inherit: the store lets nobody else in at once
	// before the last process that has them is gone. The caller must not close them.
	Inherit() []*os.File
}

// Keyer is a [Driver] that keeps names under other names.
type Keyer interface {
	// Key returns where the store keeps name.
	Key(name string) string
}

// Inspector is a [Driver] that can be looked into. What a store cannot do of it answers errors.ErrUnsupported.
type Inspector interface {
	// Lines yields the lines whose names begin with prefix and that have claims, in order of name. With an error come those that
	// could be read all the same.
	Lines(ctx context.Context, prefix string) ([]Line, error)

	// Line returns the line of one name; without claims when nobody stands there. A claim whose time is over by the store's
	// clock is shown no more, although nobody has taken it out, whether it was held or waited. A store without a clock shows it until then.
	Line(ctx context.Context, name string) (Line, error)

	// Break takes a claim away from its owner, if it still is the claim of that public id and fence (0 for claims
	// without one); otherwise it changes nothing and returns an error that matches [ErrRefused]. A waiting claim goes at
	// once. A held one is marked and its owner nudged: the next is let in when the owner has released it or its time is
	// over, so that the owner knows before. With now the next is let in at once, and the token alone keeps the order.
	//
	// A claim that cannot be marked, as a foreign one, whose owner reads no marks, can be broken only with now: without
	// it the error matches [ErrOnlyNow]. A waiting claim whose owner did not hear of it may come back at the end.
	Break(ctx context.Context, name, publicID string, fence uint64, now bool) error
}

// Watcher is a [Driver] that can follow a line.
type Watcher interface {
	// Watch yields the line of name now and after every change that it notices, until the caller stops, ctx ends or an
	// error was yielded. Changes may be merged; the last one is always shown. That a claim is marked, or that its time is
	// over, is a change, too.
	Watch(ctx context.Context, name string) iter.Seq2[Line, error]
}

// Pruner is a [Driver] whose store keeps something of names that nobody locks any more, which can go.
type Pruner interface {
	// Prune removes what the store keeps of names that begin with prefix, that nobody holds or waits for, and that were last
	// granted longer ago than idle. It returns of how many names. It removes nothing that the order of tokens rests on, as far as
	// the store's page says so, and is safe while others lock. A store with nothing to remove answers errors.ErrUnsupported.
	Prune(ctx context.Context, prefix string, idle time.Duration) (removed int, err error)
}

// Quorum is a [Driver] of several masters that know nothing of each other, of which a majority decides.
type Quorum interface {
	// Masters asks all masters who they are, and gives each its vote that may have one. The error says why the set as a whole is of no use;
	// with it come the masters all the same. A store that has none answers errors.ErrUnsupported.
	Masters(ctx context.Context) ([]Master, error)

	// GiveUp says that these masters, by their index in Masters, are gone for good. They must be exactly those that do not answer, and a
	// majority of all must answer; otherwise the error matches [ErrRefused] and nothing is changed.
	GiveUp(ctx context.Context, masters ...int) ([]Master, error)
}

// Master is one of the masters of a [Quorum], as it stands now.
type Master struct {
	Name string // for people: its number from 1, and its address if the driver was opened by URL
	Err  error  // why it has no vote, or does not answer; nil if it votes
}

// RestFinder is a [Driver] that finds what outlives its holder: processes that inherited a session ([Inheritor]) whose owner is gone,
// and which others no longer wait for, because its time is over or its claim was broken. What has closed the files that it
// inherited is not found. The command run asks for it before it starts anything.
type RestFinder interface {
	// Rest returns what goes on of former holders of name, of whom none stands in its line any more. With an error comes what could be
	// found all the same. A store that finds nothing ever answers errors.ErrUnsupported.
	Rest(ctx context.Context, name string) ([]Rest, error)

	// SignalRest sends a signal to every process that Rest would return now, and to no process that took over its number. Where the
	// system does not tell which processes these are it answers errors.ErrUnsupported.
	SignalRest(ctx context.Context, name string, sig os.Signal) error
}

// Rest is what goes on of one former holder, for people.
type Rest struct {
	Owner Owner // who held; his own process is not part of the rest
	Lives bool  // his process has not ended, and may still be about to end the rest
	PIDs  []int // of the processes, as this one sees them; none where the system or the user's rights do not show them
}

// Line is the line of one name as people see it.
type Line struct {
	Name   string
	Fence  uint64   // the highest token reserved so far; 0 where the store keeps no counter for a name
	Claims []Holder // in order, holders and waiters
}

// Holder is one claim as people see it. It holds no secret.
type Holder struct {
	PublicID      string // see [PublicID]
	Owner         Owner
	Kind          Kind
	Weight, Limit int // the limit is 0 where another program wrote the claim and does not say it
	Held, Broken  bool
	Foreign       bool // written by another program, in a layout that both know
	Note          string
	Since         time.Time // when it was granted, or asked for where several masters grant, or entered the line; the store's clock, zero when it does not say, of any holder
	Until         time.Time // when it goes unless it is renewed; zero when the store does not say
	Fence         uint64
	Passes        int
}
