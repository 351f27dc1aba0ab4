package redisstore

import (
	"strconv"
	"testing"
)

func TestACrowdIsRememberedWithinBounds(t *testing.T) {
	var c Crowd
	c.Set("a", true)
	if !c.At("a") || c.At("b") {
		t.Error("a is crowded and b is not; it is said otherwise")
	}
	c.Set("a", false)
	if c.At("a") {
		t.Error("a is said to be crowded still")
	}
	for i := range 3 * crowdMax {
		c.Set(strconv.Itoa(i), true)
	}
	if len(c.names) > crowdMax {
		t.Errorf("%d names are remembered, want %d at most", len(c.names), crowdMax)
	}
}
