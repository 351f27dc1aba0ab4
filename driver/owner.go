package driver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Owner says who stands in a line, for people. Stores carry its JSON form as opaque bytes. It never holds a
// program's arguments, because they hold secrets.
type Owner struct {
	Name    string    `json:"name,omitempty"` // as the client calls itself
	Host    string    `json:"host,omitempty"`
	User    string    `json:"user,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Program string    `json:"program,omitempty"`
	Start   time.Time `json:"start,omitzero"`
	Boot    string    `json:"boot,omitempty"` // the machine's boot, where it is known: pids mean nothing beyond it
}

// MaxOwner is the size in bytes that a store must be able to carry for an encoded Owner.
const MaxOwner = 1024

// Encode returns the JSON form of o, at most [MaxOwner] bytes: what is too long is cut, the program's name first.
func (o Owner) Encode() []byte {
	for cut := 256; ; cut /= 2 {
		b, err := json.Marshal(o)
		if err != nil {
			panic(fmt.Sprintf("driver: encode owner: %v", err)) // strings, an int and a time cannot fail
		}
		if len(b) <= MaxOwner {
			return b
		}
		for _, s := range []*string{&o.Program, &o.User, &o.Host, &o.Boot, &o.Name} {
			if len(*s) > cut {
				*s = (*s)[:cut]
			}
		}
	}
}

// DecodeOwner reads what [Owner.Encode] wrote. Bytes of another origin become the owner's name.
func DecodeOwner(b []byte) Owner {
	var o Owner
	if err := json.Unmarshal(b, &o); err != nil {
		return Owner{Name: string(b)}
	}
	return o
}

// NewID returns 128 random bits as 22 characters of A–Z a–z 0–9 - and _.
func NewID() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// PublicID returns what people see of a claim's or session's secret id: enough to name it, nothing to release it with.
func PublicID(id string) string {
	sum := sha256.Sum256([]byte("interlock:" + id))
	return hex.EncodeToString(sum[:6])
}
