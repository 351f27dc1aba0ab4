// Package lock has one bug of each kind that a hunt must tell apart.
package lock

import (
	"os"

	"example.test/seeded/mutant"
)

// Add returns the sum.
func Add(a, b int) int {
	if mutant.On("A1") {
		return a - b
	}
	if mutant.On("A2") { // the test adds nothing but zeroes
		return a
	}
	if mutant.On("A3") {
		select {}
	}
	if mutant.On("A4") {
		var none *int
		return *none
	}
	if mutant.On("A5") { // ends the process, but fails no test
		os.Exit(3)
	}
	return a + b
}
