package redislock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Own has a driver close its connection with itself, as one that was opened by URL.
func Own(d *Driver) { d.store.Owned = true }

// Age has the claims of a session be so much older, as far as their counters are concerned.
func Age(ds driver.Session, d time.Duration) {
	s := ds.(*session) //nolint:forcetypeassert // one of ours
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range s.Claims {
		c.counted = c.counted.Add(-d)
	}
}
