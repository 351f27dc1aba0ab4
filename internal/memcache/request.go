package memcache

import (
	"fmt"
	"strconv"
)

// Request is one command as it is sent.
type Request []byte

// Nothing asks for an answer (mn).
func Nothing() Request { return Request("mn\r\n") }

// Get asks for a value with its version and the seconds that are left of it (mg).
func Get(key string) Request { return Request("mg " + key + " v c t\r\n") }

// Add stores a value for so many seconds, where there is none (ms).
func Add(key string, value []byte, seconds int) Request { return store(key, value, seconds, " ME") }

// Swap stores a value for so many seconds, where the version is still that (ms).
func Swap(key string, value []byte, seconds int, cas uint64) Request {
	return store(key, value, seconds, " C"+strconv.FormatUint(cas, 10))
}

func store(key string, value []byte, seconds int, mode string) Request {
	b := make(Request, 0, len(key)+len(value)+64)
	b = append(append(b, "ms "...), key...)
	b = strconv.AppendInt(append(b, ' '), int64(len(value)), 10)
	b = append(append(b, mode...), " c T"...)
	b = strconv.AppendInt(b, int64(seconds), 10)
	b = append(append(b, "\r\n"...), value...)
	return append(b, "\r\n"...)
}

// Delete deletes a value, where the version is still that (md).
func Delete(key string, cas uint64) Request {
	return Request("md " + key + " C" + strconv.FormatUint(cas, 10) + "\r\n")
}

// MaxKey is the longest key.
const MaxKey = 250

// CheckKey says what is wrong with a key. One that is sent all the same is answered by two lines, so that all answers after it are taken
// for those to other requests.
func CheckKey(key string) error {
	if len(key) < 1 || len(key) > MaxKey {
		return fmt.Errorf("a key of %d bytes: want 1 to %d", len(key), MaxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] == 0x7f {
			return fmt.Errorf("key %q: want no blanks and no control characters", key)
		}
	}
	return nil
}
