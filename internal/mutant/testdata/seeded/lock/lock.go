// Package lock has a place for every kind of bug that a hunt must tell apart.
package lock

import (
	_ "embed"
	"fmt"
)

//go:embed greeting.txt
var greeting string

var limit = 3

const (
	first = iota
	second
)

var one, two = pair()

func pair() (int, int) { return first, second }

// words depends on an embedded text before main begins, as a script does.
var words = len(greeting)

// Add returns the sum.
func Add(a, b int) int {
	return a + b
}

// One is a function on one line.
func One() int { return 1 }

// A Pair has a method, a label and a result with a name.
type Pair struct{ A, B int }

// Larger returns the larger number.
func (p *Pair) Larger() (n int) {
outer:
	for {
		for {
			if p.A > p.B {
				n = p.A
				break outer
			}
			n = p.B
			break outer
		}
	}
	return n
}

// Set fails for what is above the limit.
func (p *Pair) Set(n int) error {
	if n > limit {
		return fmt.Errorf("%d is above %d", n, limit)
	}
	p.A = n
	return nil
}
