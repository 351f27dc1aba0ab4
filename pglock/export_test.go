package pglock

// Pooled has the driver take its server for one behind a pooler that shares connections.
func (d *Driver) Pooled() { d.sessions.Notifier = nil }

// Prepares has the driver prepare a statement on its connections, whatever they go through.
func (d *Driver) Prepares() { d.unprepared.Store(false) }
