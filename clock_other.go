//go:build !linux

package interlock

import "time"

// sleptSoFar is 0 where the monotonic clock counts sleep or where its loss cannot be told.
func sleptSoFar(time.Duration) time.Duration { return 0 }
