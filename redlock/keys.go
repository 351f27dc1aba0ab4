package redlock

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// keys are where each master keeps one name: the lock itself at exactly the name, and beside it
// what other programs never look at. The kinds differ from those of package redislock, so that a
// user of one of the masters alone and a user of all of them take each other for another program's
// lock and nothing more.
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

func (k keys) all() []string {
	return []string{k.name, k.counter, k.line, k.claims, membership.VoteKey, membership.FloorKey, membership.HighKey}
}

// grants are the keys of a script that may draw a token and looks at no line.
func (k keys) grants() []string {
	return []string{k.name, k.counter, membership.VoteKey, membership.FloorKey, membership.HighKey}
}

// nameOf is the name whose counter key is, or "".
func nameOf(key string) string {
	return redisstore.NameOf(key, "}:qfence:", func(name string) string { return keysOf(name).counter })
}

// channels begins the channels of all processes.
const channels = "il:push:"

func newChannel() string { return channels + driver.NewID() }
