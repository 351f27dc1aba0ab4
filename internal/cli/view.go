package cli

import "github.com/interlock-go/interlock/driver"

// view is a store that was opened for reading.
type view struct {
	driver.Inspector
	store string // for people
	close func()
}

// key returns where the store keeps a name, as interlock.Client.Key does.
func (v *view) key(name string) string {
	if k, ok := v.Inspector.(driver.Keyer); ok {
		return k.Key(name)
	}
	return name
}
