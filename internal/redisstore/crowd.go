package redisstore

import "sync"

// Crowd remembers the names at which others stood in line when last seen, which decides which script is tried first. It is
// only a guess, and is forgotten when it grows large. The zero value is ready.
type Crowd struct {
	mu    sync.Mutex
	names map[string]struct{}
}

const crowdMax = 4096

// Set remembers whether others stand in line at a name.
func (c *Crowd) Set(name string, crowded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !crowded {
		delete(c.names, name)
		return
	}
	if c.names == nil || len(c.names) >= crowdMax {
		c.names = map[string]struct{}{}
	}
	c.names[name] = struct{}{}
}

// At reports whether others stood in line at a name when last seen.
func (c *Crowd) At(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, crowded := c.names[name]
	return crowded
}
