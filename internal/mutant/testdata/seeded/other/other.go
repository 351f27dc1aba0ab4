// Package other is of a module of its own.
package other

// Twice returns twice the number.
func Twice(n int) int { return 2 * n }
