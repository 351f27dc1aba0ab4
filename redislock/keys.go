package redislock

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// keys are where Redis keeps one name: the lock itself at exactly the name, and beside it, in the
// same slot, what other programs never read.
type keys struct {
	name    string // a string: the holder
	counter string // a number: the highest token drawn
	line    string // a list: IDs in order
	claims  string // a hash: ID -> record
}

func keysOf(name string) keys {
	tag := redisstore.SideKeys + redisconn.Tag(name)
	return keys{name: name, counter: tag + "}:fence:" + name, line: tag + "}:line:" + name, claims: tag + "}:claims:" + name}
}

func (k keys) all() []string { return []string{k.name, k.counter, k.line, k.claims} }

// counterOf is the name whose counter key is, or "".
func counterOf(key string) string {
	return redisstore.NameOf(key, "}:fence:", func(name string) string { return keysOf(name).counter })
}

// lineOf is the name whose line key is, or "".
func lineOf(key string) string {
	return redisstore.NameOf(key, "}:line:", func(name string) string { return keysOf(name).line })
}

// channels begins the names of all channels.
const channels = "il:push:"

// channelAt returns a new channel for a master. It is new with each connection, so that a message
// to it reaches exactly that connection or none: if a message has no receiver, the process that
// wrote the channel beside its claim is dead or will ask again.
func channelAt(node string) string {
	if node != "" {
		return channels + "=" + driver.NewID() // one of several masters: see line.lua
	}
	return channels + driver.NewID()
}
