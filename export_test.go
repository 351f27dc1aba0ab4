package interlock

// NewClientWithClock is New with a clock that counts suspension in its own way.
var NewClientWithClock = newClient

// StopTrustTimers does what a stop of the process does to the timers that end leases: they do not come.
func StopTrustTimers(c *Client) {
	for _, p := range c.everyPool() {
		p.mu.Lock()
		if s := p.session; s != nil {
			s.trust.Stop()
		}
		p.mu.Unlock()
	}
}

// Remains counts what a client keeps for locks: isolated sessions, local lines, claims.
func Remains(c *Client) (isolated, lines, claims int) {
	c.mu.Lock()
	isolated = len(c.isolated)
	c.mu.Unlock()
	for _, p := range c.everyPool() {
		p.mu.Lock()
		lines += len(p.lines)
		if p.session != nil {
			claims += len(p.session.claims)
		}
		p.mu.Unlock()
	}
	return isolated, lines, claims
}

// SleptSoFar is how long the machine was suspended, given what is known.
var SleptSoFar = sleptSoFar
