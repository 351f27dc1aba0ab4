package redlock

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A value of ours is the layout's version, the ID of the claim, a mark, the claim's ticket, the channel of its process and
// information:
//
//	ilq1:AbCdEfGhIjKlMnOpQrStUv-1795186980123456 il:push:… {"o":{"name":"web-3"},"k":"m"}
//
// The mark is - while nobody waits, + while a line stands there, and ! when an operator has broken the claim.
const (
	layout  = "ilq1:"
	idLen   = 22
	headLen = len(layout) + idLen
	fullLen = headLen + 1 + 16 + 1
)

// holderID returns the ID in a value, or "" if it is none of ours.
func holderID(value string) string {
	if len(value) < fullLen || !strings.HasPrefix(value, layout) {
		return ""
	}
	return value[len(layout):headLen]
}

func appendValue(b []byte, c *claim, channel string, owner []byte) []byte {
	b = append(append(append(b, layout...), c.ID...), '-')
	b = append(append(append(b, c.place()...), ' '), channel...)
	return appendInfo(append(b, ' '), owner, c.Claim)
}

// info is what a value tells people.
type info struct {
	Owner  json.RawMessage `json:"o,omitempty"`
	Kind   string          `json:"k"`
	Note   string          `json:"n,omitempty"`
	Passes int             `json:"p,omitempty"`
}

// kinds are the letters of the kinds of claims.
var kinds = map[driver.Kind]string{driver.Mutex: "m", driver.Write: "w"}

// appendInfo writes the info of a claim; owner is encoded already, once for a session.
func appendInfo(b, owner []byte, c driver.Claim) []byte {
	b = append(b, `{"o":`...)
	b = append(b, owner...)
	b = append(b, `,"k":"`...)
	b = append(b, kinds[c.Kind]...)
	b = append(b, '"')
	if c.Note != "" {
		note, _ := json.Marshal(c.Note) // a string cannot fail
		b = append(append(b, `,"n":`...), note...)
	}
	if c.Passes != 0 {
		b = strconv.AppendInt(append(b, `,"p":`...), int64(c.Passes), 10)
	}
	return append(b, '}')
}

// holder reads a value at a name for people: nil where nobody stands there.
func holder(value string) *driver.Holder {
	if value == "" {
		return nil
	}
	id := holderID(value)
	if id == "" { // another program's, and its secret: people see a hash of it
		return &driver.Holder{
			PublicID: driver.PublicID(value), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true, Foreign: true,
		}
	}
	h := &driver.Holder{
		PublicID: driver.PublicID(id), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true,
		Broken: value[headLen] == '!',
	}
	_, text := afterPlace(value)
	describe(h, text)
	return h
}

// afterPlace returns the channel and the information in a value of ours.
func afterPlace(value string) (channel, text string) {
	channel, text, _ = strings.Cut(value[fullLen:], " ")
	return channel, text
}

func describe(h *driver.Holder, text string) {
	var i info
	if json.Unmarshal([]byte(text), &i) != nil {
		return
	}
	if len(i.Owner) > 0 {
		h.Owner = driver.DecodeOwner(i.Owner)
	}
	if i.Kind == kinds[driver.Write] {
		h.Kind = driver.Write
	}
	h.Note, h.Passes = i.Note, i.Passes
}

// record is a claim in the hash of claims, as the script line writes it: w ttl since channel set info.
type record struct {
	since         time.Time
	channel, info string
}

func parseRecord(text string) (r record, ok bool) {
	f := strings.SplitN(text, " ", 6)
	if len(f) != 6 || f[0] != "w" {
		return r, false
	}
	ms, err := strconv.ParseInt(f[2], 10, 64)
	return record{time.UnixMilli(ms), f[3], f[5]}, err == nil
}
