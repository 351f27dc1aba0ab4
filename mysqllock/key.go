package mysqllock

import (
	"crypto/sha512"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// maxKey is how many characters the key of a named lock has at most. MySQL has no longer ones, and
// does not tell upper from lower case; MariaDB does, and has keys of 192 bytes. So a key is of a
// kind that both take as it is.
const maxKey = 64

// plain reports whether both servers, and quotes in SQL, take a key as it is.
func plain(key string) bool {
	return key != "" && len(key) <= maxKey && strings.IndexFunc(key, func(r rune) bool {
		return r <= ' ' || r > '~' || r >= 'A' && r <= 'Z' || r == '\'' || r == '\\'
	}) < 0
}

// place is where a store keeps its locks.
type place struct{ prefix, database string }

// conventions are how programs make the key of a name.
var conventions = map[string]func(in place, name string) (string, error){
	// Named locks are the whole server's, so the key has what the store is.
	"interlock": func(in place, name string) (string, error) {
		whole := in.database + "/" + name
		if key := in.prefix + ":" + whole; plain(key) && !strings.Contains(in.database, "/") {
			return key, nil
		}
		return in.prefix + "#" + base32(whole)[:maxKey/2], nil
	},
	"django_mysql": func(in place, name string) (string, error) { return asItIs(in.database + "." + name) },
	"dotnet":       func(_ place, name string) (string, error) { return dotnet(name) },
	"name":         func(_ place, name string) (string, error) { return asItIs(name) },
}

// asItIs is the key of those who make none.
func asItIs(key string) (string, error) {
	if !plain(key) {
		return "", fmt.Errorf("%w: as a key want at most %d characters of ASCII, without capitals, blanks, quotes and backslashes, since servers differ about others", driver.ErrName, maxKey)
	}
	return key, nil
}

// dotnet is the key that DistributedLock for .NET takes: the name, if that is in lower case and
// short enough, else its head and a hash.
func dotnet(name string) (string, error) {
	lower := strings.ToLower(name)
	if lower == name && len(name) <= maxKey {
		return asItIs(name)
	}
	hash := base32(name)
	return asItIs(lower[:min(len(lower), maxKey-len(hash))] + hash)
}

// base32 are 160 bits of a name's SHA-512, the lowest ones first.
func base32(name string) string {
	sum, bits, n := sha512.Sum512([]byte(name)), uint(0), 0
	var digits strings.Builder
	for _, b := range sum[:20] {
		bits, n = bits|uint(b)<<n, n+8
		for ; n >= 5; n -= 5 {
			digits.WriteByte("abcdefghijklmnopqrstuvwxyz234567"[bits&31])
			bits >>= 5
		}
	}
	return digits.String()
}

// convention returns how keys are made.
func convention(keys string) (func(place, string) (string, error), error) {
	if keys == "" {
		keys = "interlock"
	}
	of := conventions[keys]
	if of == nil {
		return nil, fmt.Errorf("mysqllock: unknown keys %q: want one of %s", keys, strings.Join(slices.Sorted(maps.Keys(conventions)), ", "))
	}
	return of, nil
}
