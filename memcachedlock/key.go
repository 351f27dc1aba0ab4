package memcachedlock

import (
	"crypto/sha256"
	"encoding/binary"
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

// Key implements driver.Keyer.
func (d *Driver) Key(name string) string {
	key := d.options.Prefix + name
	if d.options.Layout == Add || len(key) <= memcache.MaxKey && name != "" && strings.IndexFunc(name, unsafe) < 0 {
		return key
	}
	sum := sha256.Sum256([]byte(name))
	short := strings.Map(func(r rune) rune {
		if unsafe(r) {
			return '_'
		}
		return r
	}, name)
	return d.options.Prefix + short[:min(len(short), readable)] + "~" + hex.EncodeToString(sum[:16])
}

// unsafe is what no key has but one that is hashed: the tilde tells those from all others.
func unsafe(r rune) bool { return r <= ' ' || r >= '~' }

// check refuses a claim that cannot be kept, and returns the key of others.
func (d *Driver) check(c driver.Claim) (key string, err error) {
	why := driver.ErrRefused
	switch {
	case c.ID == "":
		err = fmt.Errorf("a claim without an ID: want one as driver.NewID makes them")
	case c.Kind != driver.Mutex:
		err = fmt.Errorf("a %s: memcached has mutexes alone", c.Kind)
	case c.Name == "" || len(c.Name) > maxName || !utf8.ValidString(c.Name):
		err, why = fmt.Errorf("a name of %d bytes: want 1 to %d, in UTF-8", len(c.Name), maxName), driver.ErrName
	default:
		key, why = d.Key(c.Name), driver.ErrName
		err = memcache.CheckKey(key)
	}
	if err != nil {
		err = fmt.Errorf("memcachedlock: %w: %w", why, err)
	}
	return key, err
}

// server is the one that a key belongs to, whether it is there or not. Each server draws a number for the key, and the largest has it: so
// where one is added or taken away only its own keys move.
func (d *Driver) server(key string) (best *memcache.Client) {
	if len(d.servers) == 1 {
		return d.servers[0]
	}
	var most uint64
	for _, s := range d.servers {
		sum := sha256.Sum256([]byte(s.Addr + " " + key))
		if n := binary.BigEndian.Uint64(sum[:]); best == nil || n > most {
			best, most = s, n
		}
	}
	return best
}
