//go:build race

package interlock_test

// raceDetector says that it is on, and keeps memory of every goroutine that was there.
const raceDetector = true
