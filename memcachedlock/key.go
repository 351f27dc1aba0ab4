package memcachedlock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
)

const (
	maxName   = 4096
	maxPrefix = 128
	readable  = 64 // bytes of a name that stay in a key that is hashed
)

// key returns the key of a lock.
func (o *Options) key(name string) string {
	key := o.Prefix + name
	if o.Layout == Add || len(key) <= memcache.MaxKey && name != "" && strings.IndexFunc(name, unsafe) < 0 {
		return key
	}
	sum := sha256.Sum256([]byte(name))
	short := strings.Map(func(r rune) rune {
		if unsafe(r) {
			return '_'
		}
		return r
	}, name)
	return o.Prefix + short[:min(len(short), readable)] + "~" + hex.EncodeToString(sum[:16])
}

// unsafe reports whether a key has r only if it is hashed: the tilde marks those keys.
func unsafe(r rune) bool { return r <= ' ' || r >= '~' }

// check returns the key of a claim, or why memcached cannot have such a claim.
func (o *Options) check(c driver.Claim) (key string, err error) {
	why := driver.ErrRefused
	switch {
	case c.ID == "":
		err = fmt.Errorf("a claim without an ID: want one as driver.NewID makes them")
	case c.Kind != driver.Mutex:
		err = fmt.Errorf("a %s: memcached has mutexes alone", c.Kind)
	case c.Name == "" || len(c.Name) > maxName || !utf8.ValidString(c.Name):
		err, why = fmt.Errorf("a name of %d bytes: want 1 to %d, in UTF-8", len(c.Name), maxName), driver.ErrName
	default:
		key, why = o.key(c.Name), driver.ErrName
		err = memcache.CheckKey(key)
	}
	if err != nil {
		err = fmt.Errorf("memcachedlock: %w: %w", why, err)
	}
	return key, err
}
