package memcache

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is the version of an item. A server gives larger ones later. One that is restarted begins
// anew, so that another item may have the CAS of one that is gone.
type Version struct {
	CAS   uint64
	Start int64 // when the server was started, in seconds since 1970 by its own clock
}

// Request is one command in the form in which it is sent.
type Request struct {
	text  []byte
	start int64 // only for a server that was started then; 0: for any
}

// Nothing does nothing and is answered.
func Nothing() *Request { return &Request{text: []byte("mn\r\n")} }

// Get reads a value with its version and the seconds until it expires.
func Get(key string) *Request { return &Request{text: []byte("mg " + key + " v c t\r\n")} }

// Add stores a value for so many seconds, if there is none.
func Add(key string, value []byte, seconds int) *Request {
	return &Request{text: store(key, value, " ME c T", seconds)}
}

// Swap stores a value for so many seconds, if the version is still that.
func Swap(key string, value []byte, seconds int, v Version) *Request {
	return &Request{store(key, value, " C"+strconv.FormatUint(v.CAS, 10)+" c T", seconds), v.Start}
}

func store(key string, value []byte, flags string, seconds int) []byte {
	b := append(make([]byte, 0, len(key)+len(value)+64), "ms "+key+" "...)
	b = strconv.AppendInt(b, int64(len(value)), 10)
	b = strconv.AppendInt(append(b, flags...), int64(seconds), 10)
	return append(append(append(b, "\r\n"...), value...), "\r\n"...)
}

// Delete deletes a value, if the version is still that.
func Delete(key string, v Version) *Request {
	return &Request{[]byte("md " + key + " C" + strconv.FormatUint(v.CAS, 10) + "\r\n"), v.Start}
}

// MaxKey is the longest key.
const MaxKey = 250

// CheckKey returns an error for a key that no server takes. The answer to such a key has two lines,
// so that all answers after it would be taken for those to other requests.
func CheckKey(key string) error {
	if len(key) < 1 || len(key) > MaxKey {
		return fmt.Errorf("a key of %d bytes: want 1 to %d", len(key), MaxKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("key %q: want no blanks and no control characters", key)
	}
	return nil
}
