package redlock

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
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

func keysOf(name string) keys {
	tag := redisstore.SideKeys + redisconn.Tag(name)
	return keys{name: name, counter: tag + "}:qfence:" + name, line: tag + "}:qline:" + name, claims: tag + "}:qclaims:" + name}
}

// Keys of the master itself.
const (
	memberKey = redisstore.SideKeys + "redlock}:member" // its record
	voteKey   = redisstore.SideKeys + "redlock}:vote"   // a fingerprint of the set that it may vote in, and its ID there
	usedKey   = redisstore.SideKeys + "redlock}:used"   // the same, as long as the set is in use
	floorKey  = redisstore.SideKeys + "redlock}:floor"  // a counter: all that are drawn from now on are above
	highKey   = redisstore.SideKeys + "redlock}:high"   // a counter: none that was drawn is above
)

func (k keys) all() []string {
	return []string{k.name, k.counter, k.line, k.claims, voteKey, floorKey, highKey}
}

// grants are the keys of a script that may draw a token and looks at no line.
func (k keys) grants() []string { return []string{k.name, k.counter, voteKey, floorKey, highKey} }

// nameOf is the name whose counter key is, or "".
func nameOf(key string) string {
	return redisstore.NameOf(key, "}:qfence:", func(name string) string { return keysOf(name).counter })
}

// channels begins the channels of all processes.
const channels = "il:push:"

func newChannel() string { return channels + driver.NewID() }
