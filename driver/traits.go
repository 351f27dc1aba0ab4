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

	Events  Kinds // of which claims all that wait are told, and none has to ask
	Expires bool  // claims of a session that is not renewed go after its time, at most Grain late; one that waits may stay while its process lives

	Fence  Durability // what tokens survive
	Single bool       // a grant reserves one token, a raw number of the store: its claim is never passed on

	MinTTL, MaxTTL time.Duration // what Spec.TTL may be, else it is clamped or refused; MinTTL > 0, and 0 is no MaxTTL
	Grain          time.Duration // expiry may come this much late; where that grows with the TTL, for one of MaxTTL
	Notice         time.Duration // how late the store learns of a death that it can see; 0 when it cannot see any

	Survives Survival // what claims survive
}

// Kinds is a set of kinds.
type Kinds uint8

// AllKinds are the four.
const AllKinds Kinds = 1<<Mutex | 1<<Write | 1<<Read | 1<<Permit

// KindsOf returns the set of these.
func KindsOf(kinds ...Kind) Kinds {
	var s Kinds
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether k is in s.
func (s Kinds) Has(k Kind) bool { return s&(1<<k) != 0 }

// String lists the kinds, as "mutex, read" or "none".
func (s Kinds) String() string {
	var names []string
	for k := Mutex; k <= Permit; k++ {
		if s.Has(k) {
			names = append(names, k.String())
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
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
	Events // of every kind that the store has
	Expires
	Fenced // tokens, at least until the store restarts
	DurableFence
)

var featureNames = []string{"Ordered", "Shared", "Counted", "Mixed", "Events", "Expires", "Fenced", "DurableFence"}

// kinds are those that a store has which makes claims of kind Mutex.
func (t Traits) kinds() Kinds {
	s := KindsOf(Mutex)
	if t.Shared {
		s |= KindsOf(Write, Read)
	}
	if t.Counted {
		s |= KindsOf(Permit)
	}
	return s
}

// Has returns the features that t has.
func (t Traits) Has() Feature {
	var f Feature
	for i, has := range []bool{
		t.Ordered, t.Shared, t.Counted, t.Mixed, t.kinds()&^t.Events == 0, t.Expires, t.Fence != NoFence, t.Fence == Durable,
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
