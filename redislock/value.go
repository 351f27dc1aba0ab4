package redislock

import (
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// A value of ours is the layout's version, the ID of the claim, a mark and information:
//
//	il1:AbCdEfGhIjKlMnOpQrStUv-{"o":{"name":"web-3"},"k":"m"}
//
// The mark is - without a line, + with one, and ! when an operator has broken the claim. cover is
// the value for all claims that share the name: they are in the line.
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

// newer reports whether a value is of a layout that this program does not know. The long script
// refuses it.
func newer(value string) bool {
	rest, ours := strings.CutPrefix(value, "il")
	digits, _, colon := strings.Cut(rest, ":")
	_, err := strconv.ParseUint(digits, 10, 64)
	return ours && colon && err == nil && value != cover && holderID(value) == ""
}

// foreignEndless is the note of a value that no lock has.
const foreignEndless = "a value without an expiry time: it looks like somebody's data, not like a lock"

// holder describes a value at a name: nil if there is none.
func holder(value string) *driver.Holder {
	h, _ := holderAs(value, nil)
	return h
}

// holderAs reads a value as holder does, and the channel in it. What it says of a claim is read by
// the reader of a listing.
func holderAs(value string, listing *redisstore.Reader) (h *driver.Holder, channel string) {
	if value == "" {
		return nil, ""
	}
	if value == cover {
		return &driver.Holder{Held: true, Kind: driver.Read, Weight: 1, Limit: driver.All}, ""
	}
	id := holderID(value)
	if id == "" {
		h := redisstore.Foreign(value)
		return &h, ""
	}
	h = &driver.Holder{
		PublicID: driver.PublicID(id), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true,
		Broken: value[headLen] == '!',
	}
	return h, listing.Describe(h, value[headLen+1:])
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
	r = record{state: f[0], kind: redisstore.KindOf(f[1]), weight: int(n[2]), limit: int(n[3]), channel: f[7], info: f[8], since: time.UnixMilli(n[6])}
	if n[5] > 0 {
		r.stop = time.UnixMilli(n[5])
	}
	return r, r.kind != 0
}
