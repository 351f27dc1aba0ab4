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
