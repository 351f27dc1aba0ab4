package memcache

import (
	"fmt"
	"strings"
)

// Version is that of an item. Of those that one server gives the later is larger; one that is restarted begins them anew, so that another
// item may have the CAS of one that is gone.
type Version struct {
	CAS   uint64
	Start int64 // when the server was started, in seconds since 1970 by its own clock
}

// Request is one command as it is sent.
type Request struct {
	text  []byte
	start int64 // for a server that was started then, and for no other; 0: for any
}

// Nothing asks for an answer.
func Nothing() *Request { return &Request{text: []byte("mn\r\n")} }

// Get asks for a value with its version and the seconds that are left of it.
func Get(key string) *Request { return &Request{text: []byte("mg " + key + " v c t\r\n")} }

// Add stores a value for so many seconds, where there is none.
func Add(key string, value []byte, seconds int) *Request {
	return &Request{text: fmt.Appendf(nil, "ms %s %d ME c T%d\r\n%s\r\n", key, len(value), seconds, value)}
}

// Swap stores a value for so many seconds, where the version is still that.
func Swap(key string, value []byte, seconds int, v Version) *Request {
	return &Request{fmt.Appendf(nil, "ms %s %d C%d c T%d\r\n%s\r\n", key, len(value), v.CAS, seconds, value), v.Start}
}

// Delete deletes a value, where the version is still that.
func Delete(key string, v Version) *Request {
	return &Request{fmt.Appendf(nil, "md %s C%d\r\n", key, v.CAS), v.Start}
}

// MaxKey is the longest key.
const MaxKey = 250

// CheckKey says what is wrong with a key. One that is sent all the same is answered by two lines, so that all answers after it are taken
// for those to other requests.
func CheckKey(key string) error {
	if len(key) < 1 || len(key) > MaxKey {
		return fmt.Errorf("a key of %d bytes: want 1 to %d", len(key), MaxKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("key %q: want no blanks and no control characters", key)
	}
	return nil
}
