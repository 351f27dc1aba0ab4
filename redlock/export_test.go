package redlock

// Vain is how often a driver has waited for a master in vain, by master.
func (d *Driver) Vain() []int64 {
	vain := make([]int64, len(d.nodes))
	for i, n := range d.nodes {
		vain[i] = n.vain.Load()
	}
	return vain
}
