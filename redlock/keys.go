package redlock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// keys are where each master keeps one name: the lock itself at exactly the name, and beside it what other programs never
// look at. The kinds differ from those of package redislock, so that a user of one of the masters alone and a user of all
// of them take each other for another program's lock and nothing more.
type keys struct {
	name    string // a string: who has this master
	counter string // a number: the highest token drawn
	line    string // a sorted set: IDs by ticket
	claims  string // a hash: ID -> record
}

// sideKeys begins the keys beside a name, so no name may begin with it.
const sideKeys = "il:{"

func keysOf(name string) keys {
	tag := sideKeys + redisconn.Tag(name)
	return keys{name: name, counter: tag + "}:qfence:" + name, line: tag + "}:qline:" + name, claims: tag + "}:qclaims:" + name}
}

// Keys of the master itself.
const (
	memberKey = sideKeys + "redlock}:member" // its record
	voteKey   = sideKeys + "redlock}:vote"   // fingerprint of the set that it may vote in
	usedKey   = sideKeys + "redlock}:used"   // the same, as long as the set is in use
)

func (k keys) all() []string { return []string{k.name, k.counter, k.line, k.claims, voteKey} }

// nameOf is the name whose counter key is, or "".
func nameOf(key string) string {
	for rest := key; ; {
		_, after, ok := strings.Cut(rest, "}:qfence:")
		if !ok {
			return ""
		}
		if keysOf(after).counter == key { // a tag may hold the same letters
			return after
		}
		rest = after
	}
}

var errSideKey = errors.New("names that begin with il:{ are the store's own keys")

// checkName refuses a name that Redis locks cannot keep.
func checkName(name string) error {
	if strings.HasPrefix(name, sideKeys) {
		return fmt.Errorf("redlock: name %q: %w: %w", name, driver.ErrRefused, errSideKey)
	}
	return nil
}
