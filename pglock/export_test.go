package pglock

// Pooled has the driver take its server for one behind a pooler that shares connections.
func (d *Driver) Pooled() { d.direct = false }
