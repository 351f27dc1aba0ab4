package redlock_test

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
)

func TestFullMemory(t *testing.T) {
	set := startMasters(t, 3)
	redistest.TryFullMemories(t, set, func() driver.Driver { return open(t, urlOf(addrs(set))) })
}
