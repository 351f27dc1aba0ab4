package redissonlock

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// keys are where Redisson keeps what belongs to one name, and where our notes are.
type keys struct {
	name    string // a hash: the holders
	counter string // a number: the highest token drawn
	line    string // a list: the waiters for a fair lock
	places  string // a sorted set: until when each of them may wait
	notes   string // a hash of ours: field -> note; Redisson does not look there
	own     string // begins the keys that hold readers' own times
	lock    string // channel of an RLock
	rw      string // channel of a ReadWriteLock
}

// keysOf names the keys of a name. Redisson puts the name into braces, so that all are in its slot,
// unless it has a brace already. On a Cluster that fails for names such as a}b, {} or a{b: there
// Redisson can take a lock but cannot release it. These names are ours alone there, so the keys
// beside them get a tag of their slot.
func keysOf(name string, cluster bool) keys {
	braced := name
	if !strings.Contains(name, "{") {
		braced = "{" + name + "}"
	}
	tag := redisconn.Tag(name)
	if cluster && redisconn.Slot(":"+braced) != redisconn.Slot(name) {
		braced = "{" + tag + "}:" + name
	}
	return keys{
		name:    name,
		counter: "redisson_lock_token:" + braced,
		line:    "redisson_lock_queue:" + braced,
		places:  "redisson_lock_timeout:" + braced,
		notes:   redisstore.SideKeys + tag + "}:redisson:" + name,
		own:     braced + ":",
		lock:    "redisson_lock__channel:" + braced,
		rw:      "redisson_rwlock:" + braced,
	}
}

// channel returns the channel to which the end of a hold is published.
func (k keys) channel(kind driver.Kind) string {
	if kind == driver.Mutex {
		return k.lock
	}
	return k.rw
}

// ownTime is the key that holds a reader's own time, or the name where a claim has none.
func (k keys) ownTime(kind driver.Kind, field string) string {
	if kind == driver.Read {
		return k.own + field + ":rwlock_timeout:1"
	}
	return k.name
}

// fieldOf is the claim's field in the hash: what Redisson writes for a thread of a client. The
// client is the driver, and the thread's number comes from the claim's ID, so every request of this
// driver finds the claim again.
func fieldOf(client, id string, kind driver.Kind) string {
	sum := sha256.Sum256([]byte(id))
	field := client + ":" + strconv.FormatUint(binary.BigEndian.Uint64(sum[:])>>1, 10) // a long of Java, above 0
	if kind == driver.Write {
		return field + writeSuffix
	}
	return field
}

// clientOf is the client whose field it is, or "".
func clientOf(field string) string {
	client, _, _ := strings.Cut(field, ":")
	return client
}

// writeSuffix ends the field of a writer.
const writeSuffix = ":write"
