package drivertest_test

import (
	"sync"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/memlock"
)

// moved is a store in memory with a base for its tokens.
type moved struct {
	memory
	mu    sync.Mutex
	below map[driver.Driver]driver.Driver
}

func (m *moved) Driver(t drivertest.T) driver.Driver {
	inner := m.memory.Driver(t)
	d, err := driver.WithFenceBase(inner, 1<<52)
	if err != nil {
		t.Fatalf("%v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.below[d] = inner
	return d
}

func (m *moved) under(d driver.Driver) driver.Driver {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.below[d]
}

func (m *moved) Stall(t drivertest.T, d driver.Driver, way drivertest.Way) func() {
	return m.memory.Stall(t, m.under(d), way)
}

func (m *moved) End(t drivertest.T, d driver.Driver, s driver.Spec) { m.memory.End(t, m.under(d), s) }

func (m *moved) Calls(d driver.Driver) int { return m.memory.Calls(m.under(d)) }

// A store with a base keeps every law that it keeps without.
func TestMemlockWithAFenceBase(t *testing.T) {
	drivertest.RunBubble(t, func(*testing.T) drivertest.Harness {
		return &moved{memory: memory{store: memlock.New()}, below: map[driver.Driver]driver.Driver{}}
	})
}
