package etcdlock

import (
	"encoding/json"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// Values are JSON behind the letters il and the number of the layout. Any other value, as the empty
// one of package concurrency, is that of another program's claim, which is exclusive: other
// programs have no other kind.
const layout = "il1"

// value is the value of a claim's key. Those of a mutex leave out kind, weight and limit.
type value struct {
	ID     string      `json:"id"` // the public one
	Kind   driver.Kind `json:"k,omitempty"`
	Weight int         `json:"w,omitempty"`
	Limit  int         `json:"l,omitempty"`
	Note   []byte      `json:"n,omitempty"` // bytes, since JSON would change a string that is no UTF-8
	Passes int         `json:"p,omitempty"`
	Broken bool        `json:"b,omitempty"`
}

// person is the value of a session's key.
type person struct {
	ID    string          `json:"id"` // the public one
	Owner json.RawMessage `json:"owner"`
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("etcdlock: encode: %v", err)) // strings and numbers cannot fail
	}
	return layout + string(b)
}

// valueOf returns the value of a claim's key.
func valueOf(c driver.Claim) value {
	v := value{ID: driver.PublicID(c.ID), Note: []byte(c.Note), Passes: c.Passes}
	if c.Kind != driver.Mutex {
		v.Kind, v.Weight, v.Limit = c.Kind, c.Weight, c.Limit
	}
	return v
}

// decode reads what encode wrote. It reports whether that was ours, and returns an error if a later
// version of this package wrote it.
func decode(b []byte, into any) (ours bool, err error) {
	if len(b) < len(layout) || string(b[:2]) != layout[:2] || b[2] < '1' || b[2] > '9' {
		return false, nil
	}
	if b[2] != layout[2] {
		return true, fmt.Errorf("layout %c was written by a newer version of Interlock: want the same version everywhere: %w", b[2], driver.ErrRefused)
	}
	return json.Unmarshal(b[len(layout):], into) == nil, nil
}
