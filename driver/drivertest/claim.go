package drivertest

import "github.com/interlock-go/interlock/driver"

// The claims. Each has a new ID; hold and denied take them as they are, queue makes them stay.

func mutex(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
}

func write(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Write, Weight: driver.All, Limit: driver.All}
}

func read(name string) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Read, Weight: 1, Limit: driver.All}
}

func permit(name string, weight, limit int) driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Permit, Weight: weight, Limit: limit}
}

// kind is a kind of claims that the store has. Of own, which is of the kind, and rival only one can
// be held. Where the kind shares, mate can be held beside own, and rival beside neither.
type kind struct {
	driver.Kind
	own, rival, mate func(name string) driver.Claim
}

// kindsOf returns those that the traits allow.
func kindsOf(t driver.Traits) []kind {
	permits := func(weight int) func(string) driver.Claim {
		return func(name string) driver.Claim { return permit(name, weight, 4) }
	}
	ks := []kind{{driver.Mutex, mutex, mutex, nil}}
	if t.Shared || t.Mixed {
		ks = append(ks, kind{driver.Write, write, write, nil})
	}
	if t.Shared {
		ks = append(ks, kind{driver.Read, read, write, read})
	}
	if t.Counted {
		ks = append(ks, kind{driver.Permit, permits(2), permits(4), permits(1)})
	}
	return ks
}

// queued returns c as one that stays in line.
func queued(c driver.Claim) driver.Claim {
	c.Queue = true
	return c
}

// same reports whether two answers tell the same state.
func same(g, h driver.Grant) bool { return g.Held == h.Held && g.Fence == h.Fence }
