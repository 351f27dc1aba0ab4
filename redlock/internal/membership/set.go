package membership

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Set is a set of masters as each of them has it on record.
type Set struct {
	Version int64    // grows when the members change; 0 for no set
	Members []string // IDs of the masters, sorted; vacated begins the places of those that were given up
	MaxTTL  time.Duration
}

// vacated begins the place of a master that an operator gave up.
const vacated = "-"

// Vote returns the vote of one master of the set: a fingerprint of the set and of the master's ID.
// A master that has lost its memory, has another master's, or belongs to another set by now, does
// not have it.
func (s Set) Vote(id string) string {
	sum := sha256.Sum256([]byte(s.String() + id))
	return hex.EncodeToString(sum[:8])
}

// String names the set with all that must agree.
func (s Set) String() string {
	short := make([]string, len(s.Members))
	for i, id := range s.Members {
		short[i] = id[:min(len(id), 8)]
	}
	return fmt.Sprintf("%d masters (%s; version %d) with MaxTTL %v", len(s.Members), strings.Join(short, " "), s.Version, s.MaxTTL)
}

// has reports whether a master with this ID belongs to the set.
func (s Set) has(id string) bool { return slices.Contains(s.Members, id) }

// vacant counts the places whose master was given up.
func (s Set) vacant() (n int) {
	for _, id := range s.Members {
		if strings.HasPrefix(id, vacated) {
			n++
		}
	}
	return n
}

func (s Set) same(o Set) bool {
	return s.Version == o.Version && s.MaxTTL == o.MaxTTL && slices.Equal(s.Members, o.Members)
}

// Rejoin is how long a master that has lost its memory has no vote. Whatever it forgot is over
// then, by its own clock, and who counted on it has noticed.
func Rejoin(maxTTL time.Duration) time.Duration {
	return maxTTL + maxTTL/50 + 10*time.Millisecond
}

// Used is how long after its last use a set of masters counts as used. Who uses it says so within
// half of MaxTTL.
func Used(maxTTL time.Duration) time.Duration { return 3 * maxTTL }
