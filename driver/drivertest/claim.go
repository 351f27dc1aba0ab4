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

// queued returns c as one that stays in line.
func queued(c driver.Claim) driver.Claim {
	c.Queue = true
	return c
}

// same reports whether two answers tell the same state.
func same(g, h driver.Grant) bool { return g.Held == h.Held && g.Fence == h.Fence }
