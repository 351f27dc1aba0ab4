//go:build !race

package redislock_test

const raceDetector = false
