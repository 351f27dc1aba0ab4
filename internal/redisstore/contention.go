package redisstore

import "sync"

// Contention remembers the names at which other claims waited when last seen, which decides which
// script is tried first. It is only a hint, and is forgotten when it grows large. The zero value is
// ready.
type Contention struct {
	mu    sync.Mutex
	names map[string]struct{}
}

const maxContended = 4096

// Set remembers whether other claims wait at a name.
func (c *Contention) Set(name string, contended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !contended {
		delete(c.names, name)
		return
	}
	if c.names == nil || len(c.names) >= maxContended {
		c.names = map[string]struct{}{}
	}
	c.names[name] = struct{}{}
}

// At reports whether other claims waited at a name when last seen.
func (c *Contention) At(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, contended := c.names[name]
	return contended
}
