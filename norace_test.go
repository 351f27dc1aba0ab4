//go:build !race

package interlock_test

const raceDetector = false
