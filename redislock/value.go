package redislock

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A value of ours is the layout's version, the ID of the claim, a mark and information:
//
//	il1:AbCdEfGhIjKlMnOpQrStUv-{"o":{"name":"web-3"},"k":"m"}
//
// The mark is - while nobody waits, + while a line stands there, and ! when an operator has broken the claim. cover
// stands for all claims that share the name: they are in the line.
const (
	layout  = "il1:"
	cover   = "il1:shared"
	idLen   = 22
	headLen = len(layout) + idLen
)

// holderID returns the ID in a value, or "" if it is no claim of ours that holds alone.
func holderID(value string) string {
	if len(value) <= headLen || !strings.HasPrefix(value, layout) {
		return ""
	}
	return value[len(layout):headLen]
}

// info is what a value tells people.
type info struct {
	Owner   json.RawMessage `json:"o,omitempty"`
	Kind    string          `json:"k"`
	Note    string          `json:"n,omitempty"`
	Passes  int             `json:"p,omitempty"`
	Channel string          `json:"c,omitempty"` // of its process, once it listens
}

// kinds are the letters of the kinds of claims in records.
var kinds = map[driver.Kind]string{driver.Mutex: "m", driver.Write: "w", driver.Read: "r", driver.Permit: "p"}

func kindOf(letter string) driver.Kind {
	for k, l := range kinds {
		if l == letter {
			return k
		}
	}
	return 0
}

// appendInfo writes the info of a claim; owner is encoded already, once for a session.
func appendInfo(b, owner []byte, c driver.Claim, channel string) []byte {
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
	if channel != "" {
		b = append(append(append(b, `,"c":"`...), channel...), '"')
	}
	return append(b, '}')
}

// holder reads a value at a name for people: nil where nobody stands there.
func holder(value string) *driver.Holder {
	if value == "" {
		return nil
	}
	if value == cover {
		return &driver.Holder{Held: true, Kind: driver.Read, Weight: 1, Limit: driver.All}
	}
	id := holderID(value)
	if id == "" {
		return foreign(value)
	}
	h := &driver.Holder{
		PublicID: driver.PublicID(id), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true,
		Broken: value[headLen] == '!',
	}
	describe(h, value[headLen+1:])
	return h
}

// foreign describes a value that another program wrote. It is that program's secret, so people see a hash of it.
func foreign(value string) *driver.Holder {
	return &driver.Holder{
		PublicID: driver.PublicID(value), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true, Foreign: true,
	}
}

func describe(h *driver.Holder, text string) (channel string) {
	var i info
	if json.Unmarshal([]byte(text), &i) != nil {
		return ""
	}
	if len(i.Owner) > 0 {
		h.Owner = driver.DecodeOwner(i.Owner)
	}
	if k := kindOf(i.Kind); k != 0 {
		h.Kind = k
	}
	h.Note, h.Passes = i.Note, i.Passes
	return i.Channel
}

// record is a claim in the hash of claims: state kind weight limit ttl stop since channel info.
type record struct {
	state         string // w waits, h held, b held and broken
	kind          driver.Kind
	weight, limit int
	stop, since   time.Time
	channel, info string
}

func parseRecord(text string) (r record, ok bool) {
	f := strings.SplitN(text, " ", 9)
	if len(f) != 9 {
		return r, false
	}
	n := make([]int64, 7)
	for i := 2; i < 7; i++ {
		var err error
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil {
			return r, false
		}
	}
	r = record{state: f[0], kind: kindOf(f[1]), weight: int(n[2]), limit: int(n[3]), channel: f[7], info: f[8], since: time.UnixMilli(n[6])}
	if n[5] > 0 {
		r.stop = time.UnixMilli(n[5])
	}
	return r, r.kind != 0
}
