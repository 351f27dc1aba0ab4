package redisstore

import (
	"strconv"
	"testing"
)

func TestContentionIsRememberedWithinBounds(t *testing.T) {
	var c Contention
	c.Set("a", true)
	if !c.At("a") || c.At("b") {
		t.Error("a is contended and b is not; it is said otherwise")
	}
	c.Set("a", false)
	if c.At("a") {
		t.Error("a is said to be contended still")
	}
	for i := range 3 * maxContended {
		c.Set(strconv.Itoa(i), true)
	}
	if len(c.names) > maxContended {
		t.Errorf("%d names are remembered, want %d at most", len(c.names), maxContended)
	}
}
