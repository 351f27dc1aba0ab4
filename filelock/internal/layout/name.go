package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Hash is what names the record of a lock and the file of a session: 128 bits of SHA-256. File names built from it
// cannot fall together on file systems that fold case or normal forms, because they are digits and lower-case letters.
type Hash [16]byte

// HashOf returns the hash of a lock's name or of a session's id.
func HashOf(s string) Hash {
	sum := sha256.Sum256([]byte(s))
	return Hash(sum[:16])
}

// String returns h in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// maxPrefix is how much of a lock's name its record's name repeats, for people who list the directory.
const maxPrefix = 40

// RecordName returns the file name of the record of a lock: a prefix for people and the hash that tells names apart.
// The full name stands in the record and is compared.
func RecordName(name string, h Hash) string {
	var b strings.Builder
	for _, r := range name {
		if b.Len() == maxPrefix {
			break
		}
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			b.WriteRune(r)
		case 'A' <= r && r <= 'Z':
			b.WriteRune(r - 'A' + 'a')
		default:
			b.WriteByte('-')
		}
	}
	return b.String() + "-" + h.String()
}

// HashIn returns the hash at the end of a record's file name.
func HashIn(file string) (h Hash, ok bool) {
	if len(file) < 2*len(h)+1 || file[len(file)-2*len(h)-1] != '-' {
		return h, false
	}
	n, err := hex.Decode(h[:], []byte(file[len(file)-2*len(h):]))
	return h, err == nil && n == len(h)
}
