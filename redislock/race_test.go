//go:build race

package redislock_test

// raceDetector says that it is on, and keeps memory of every goroutine that was there.
const raceDetector = true
