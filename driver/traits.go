package driver

import (
	"fmt"
	"strings"
	"time"
)

// Traits are the promises of a store as it was opened. Most are tested both ways: a store that does not promise order
// must be seen to reorder.
type Traits struct {
	Ordered bool // a claim whose Acquire was answered before another was called is granted first, and no try overtakes
	Shared  bool // has read claims; without them the core makes no write claims either
	Counted bool // has permits

	// Mixed: mutex, write and read claims of one name stand in one line and exclude each other by the rule. Without it
	// a line has mutexes alone, or write and read claims together. Permits stand alone on every store. A claim that
	// does not go with those that stand there is refused with an error that matches [ErrRefused].
	Mixed bool

	Events  bool // all waiters are told, none has to ask
	Expires bool // claims of a session that is not renewed go after its time, at most Grain late; one that waits may stay while its process lives

	Fence  Durability // what tokens survive
	Single bool       // a grant reserves one token, a raw number of the store: its claim is never passed on

	MinTTL, MaxTTL time.Duration // what Spec.TTL may be, else it is clamped or refused; MinTTL > 0, and 0 is no MaxTTL
	Grain          time.Duration // expiry may come this much late; where that grows with the TTL, for one of MaxTTL
	Notice         time.Duration // how late the store learns of a death that it can see; 0 when it cannot see any

	Survives Survival // what claims survive
}

// Durability says what a counter of tokens survives.
type Durability uint8

// The durabilities of tokens.
const (
	NoFence      Durability = iota // there are no tokens
	UntilRestart                   // tokens grow until the store restarts or forgets
	Durable                        // tokens grow over restarts of the store and of the machine
)

// String returns the durability as it is shown to people.
func (d Durability) String() string {
	switch d {
	case NoFence:
		return "none"
	case UntilRestart:
		return "until restart"
	case Durable:
		return "durable"
	}
	return "unknown"
}

// Survival says what the claims of a session survive.
type Survival struct {
	Process bool // the end of every process that acts for the session; they then go by TTL
	Restart bool // a restart of the store
	Machine bool // a restart of the store's machine
}

// Feature names traits that a client can require.
type Feature uint16

// The features.
const (
	Ordered Feature = 1 << iota
	Shared
	Counted
	Mixed
	Events
	Expires
	Fenced // tokens, at least until the store restarts
	DurableFence
)

var featureNames = []string{"Ordered", "Shared", "Counted", "Mixed", "Events", "Expires", "Fenced", "DurableFence"}

// Has returns the features that t has.
func (t Traits) Has() Feature {
	var f Feature
	for i, has := range []bool{
		t.Ordered, t.Shared, t.Counted, t.Mixed, t.Events, t.Expires, t.Fence != NoFence, t.Fence == Durable,
	} {
		if has {
			f |= 1 << i
		}
	}
	return f
}

// String lists the features by name.
func (f Feature) String() string {
	var names []string
	for i, n := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	if rest := f >> len(featureNames); rest != 0 {
		names = append(names, fmt.Sprintf("Feature(%#x)", uint16(rest)<<len(featureNames)))
	}
	return strings.Join(names, ", ")
}
