package redisstore

import (
	"encoding/json"
	"strconv"

	"github.com/interlock-go/interlock/driver"
)

// Info is what a claim's value or record says to people, as JSON without empty fields.
type Info struct {
	Owner   json.RawMessage `json:"o,omitempty"` // encoded already, once for a session
	Kind    string          `json:"k,omitempty"` // its letter
	Note    string          `json:"n,omitempty"`
	Passes  int             `json:"p,omitempty"`
	Channel string          `json:"c,omitempty"` // of its process, once that is subscribed
}

// Append appends i to b. It is called for every claim, so it does without reflection.
func (i Info) Append(b []byte) []byte {
	b = append(append(b, `{"o":`...), i.Owner...)
	if i.Kind != "" {
		b = append(append(append(b, `,"k":"`...), i.Kind...), '"')
	}
	if i.Note != "" {
		note, _ := json.Marshal(i.Note) // a string cannot fail
		b = append(append(b, `,"n":`...), note...)
	}
	if i.Passes != 0 {
		b = strconv.AppendInt(append(b, `,"p":`...), int64(i.Passes), 10)
	}
	if i.Channel != "" {
		b = append(append(append(b, `,"c":"`...), i.Channel...), '"')
	}
	return append(b, '}')
}

// Describe decodes info written by Append into h and returns its channel. Text that is not valid
// info leaves h unchanged.
func Describe(h *driver.Holder, text string) (channel string) {
	var i Info
	if json.Unmarshal([]byte(text), &i) != nil {
		return ""
	}
	i.Tell(h)
	return i.Channel
}

// Tell copies the fields of i into h.
func (i Info) Tell(h *driver.Holder) {
	if len(i.Owner) > 0 {
		h.Owner = driver.DecodeOwner(i.Owner)
	}
	if k := KindOf(i.Kind); k != 0 {
		h.Kind = k
	}
	h.Note, h.Passes = i.Note, i.Passes
}

// Letter returns the letter of a kind, in values, records and scripts.
func Letter(k driver.Kind) string {
	switch k {
	case driver.Mutex:
		return "m"
	case driver.Write:
		return "w"
	case driver.Read:
		return "r"
	case driver.Permit:
		return "p"
	}
	return ""
}

// KindOf returns the kind whose letter it is, or 0.
func KindOf(letter string) driver.Kind {
	for _, k := range []driver.Kind{driver.Mutex, driver.Write, driver.Read, driver.Permit} {
		if letter == Letter(k) {
			return k
		}
	}
	return 0
}

// Foreign describes a value that another program wrote. It may be that program's secret, so people
// see a hash of it.
func Foreign(value string) driver.Holder {
	return driver.Holder{
		PublicID: driver.PublicID(value), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true, Foreign: true,
	}
}
