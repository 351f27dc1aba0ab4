package broken

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/memlock"
)

// A Driver is one way to be wrong.
type Driver struct {
	Name  string
	Law   string // the law that it breaks, by the name of its test; none if the suite does not notice it
	Fault string // what it does

	// Says is a part of what the law's report must say, in which … is anything. Where the seed
	// decides which part of a law comes first there are several, with " | " between them.
	Says string

	Breaks string // without a law: the contract's words that it breaks
	Want   string // and what a law would have to do

	Real bool // it starts processes, so that the time of a bubble would stand still

	store memlock.Personality
	new   func() *fault // with the fault
	twin  func() *fault // without it; nil: an empty layer
	table *tableFault   // of a driver that loads rows and swaps them, in place of memlock and the layer
}

// Harness returns the harness of a new store under the broken driver. Unless d is Real it is for
// testing/synctest bubbles: it gives the machine no time to be slow.
func (d Driver) Harness(drivertest.T) drivertest.Harness {
	if d.table != nil {
		return newTables(d.table)
	}
	return d.harness(d.new())
}

// Twin returns the harness of the same driver without its fault.
func (d Driver) Twin(drivertest.T) drivertest.Harness {
	if d.table != nil {
		return newTables(&tableFault{})
	}
	f := &fault{}
	if d.twin != nil {
		f = d.twin()
	}
	return d.harness(f)
}

func (d Driver) harness(f *fault) *harness {
	h := &harness{personality: d.store, fault: f, store: memlock.NewPersonality(d.store)}
	if d.Real {
		h.slack = 2 * time.Second
	}
	return h
}

// harness acts on memlock behind the layer's back.
type harness struct {
	personality memlock.Personality
	fault       *fault
	slack       time.Duration

	mu    sync.Mutex
	store *memlock.Driver
}

func (h *harness) Driver(drivertest.T) driver.Driver {
	h.mu.Lock()
	defer h.mu.Unlock()
	return newLayer(h.store.Share(), h.fault)
}

func (h *harness) Prefix() string       { return "broken/" }
func (h *harness) TTL() time.Duration   { return time.Second }
func (h *harness) Slack() time.Duration { return h.slack }

// Restart puts another store in the place of the first, which drivers that were opened before do
// not notice.
func (h *harness) Restart(drivertest.T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault.restart != nil {
		h.store = h.fault.restart(h.store)
		return
	}
	h.store = memlock.NewPersonality(h.personality)
}

func (h *harness) Kill(_ drivertest.T, d driver.Driver) {
	if h.fault.kill != nil {
		h.fault.kill(d.(*layer))
	}
}

func (h *harness) Stall(_ drivertest.T, d driver.Driver, way drivertest.Way) func() {
	if way == drivertest.Replies {
		return d.(*layer).memory.StallReplies()
	}
	return d.(*layer).memory.Stall()
}

func (h *harness) End(_ drivertest.T, d driver.Driver, _ driver.Spec) {
	d.(*layer).memory.EndSessions()
}

func (h *harness) Calls(d driver.Driver) int { return d.(*layer).memory.Calls() }

func (h *harness) Budget() drivertest.Budget {
	return drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}
}

// Freeze stands for a process that is stopped in the middle of a write: it has the writers' lock of
// the name, where the layer has such locks.
func (h *harness) Freeze(_ drivertest.T, name string) func() {
	if h.fault.writers == nil {
		return func() {}
	}
	if err := h.fault.writers.lock(context.Background(), name); err != nil {
		panic(err) // only a context's end can end the waiting
	}
	thawed := false
	return func() {
		if !thawed {
			thawed = true
			h.fault.writers.unlock(name)
		}
	}
}

// Cannot implements drivertest.Abstainer. The broken drivers of Law14 lose all notices themselves.
func (h *harness) Cannot(law string) string {
	switch law {
	case "Law13_NothingStays", "Also_Outcomes":
		return "a request that memlock's wire holds is not sent any more when its context has ended"
	case "Law14_LostNotice":
		return "notices are lost by the store's personality"
	}
	return ""
}
