package cli

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// wanted is the lock that a job wants.
type wanted struct {
	name  string
	kind  driver.Kind
	limit int    // of permits
	store string // for people; "" before it is opened
}

// errLate: the lock had too little time left to start the command. The next grant is a new one.
var errLate = errors.New("the lock came too late to start the command")

// tryPatience is how long a store may take to answer a caller that does not wait for the lock, as
// it is for TryLock.
const tryPatience = 2 * time.Second

// leastPatience is how long it may take at least to answer a caller that waits for a moment: to
// open a store takes some round trips.
const leastPatience = time.Second

// patience is how long a job waits for its lock, and for a store that cannot be reached.
type patience struct {
	bounded  bool          // a time was given
	once     bool          // it is 0: the lock is not waited for, and the store tried once
	forStore time.Duration // with a store that does not answer, where bounded
}

// patienceOf returns the patience of a job that waits for the lock for d.
func patienceOf(d time.Duration) patience {
	if d == 0 {
		return patience{bounded: true, once: true, forStore: tryPatience}
	}
	return patience{bounded: true, forStore: max(d, leastPatience)}
}
