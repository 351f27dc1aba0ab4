package redislock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// keys are where Redis keeps one name: the lock itself at exactly the name, and beside it, in the same slot, what other
// programs never look at.
type keys struct {
	name    string // a string: who holds
	counter string // a number: the highest token drawn
	line    string // a list: IDs in order
	claims  string // a hash: ID -> record
}

// sideKeys begins the keys beside a name, so no name may begin with it.
const sideKeys = "il:{"

func keysOf(name string) keys {
	tag := sideKeys + redisconn.Tag(name)
	return keys{name: name, counter: tag + "}:fence:" + name, line: tag + "}:line:" + name, claims: tag + "}:claims:" + name}
}

func (k keys) all() []string { return []string{k.name, k.counter, k.line, k.claims} }

// nameOf is the name whose counter key is, or "".
func nameOf(key string) string {
	for rest := key; ; {
		_, after, ok := strings.Cut(rest, "}:fence:")
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
		return fmt.Errorf("redislock: name %q: %w: %w", name, driver.ErrRefused, errSideKey)
	}
	return nil
}
