package redlock

import (
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// A value of ours is the layout's version, the ID of the claim, a mark, the claim's ticket, the
// channel of its process and information:
//
//	ilq1:AbCdEfGhIjKlMnOpQrStUv-1795186980123456 il:push:… {"o":{"name":"web-3"},"k":"m"}
//
// The mark is - while nobody waits, + while a line stands there, and ! when an operator has broken
// the claim.
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

// ticketOf returns the ticket in a value, or "" if it is none of ours.
func ticketOf(value string) string {
	if holderID(value) == "" {
		return ""
	}
	return value[headLen+1 : fullLen-1]
}

// infoOf is what a claim tells people; owner is encoded already, once for a session.
func infoOf(c driver.Claim, owner []byte) string {
	return string(redisstore.Info{Owner: owner, Kind: redisstore.Letter(c.Kind), Note: c.Note, Passes: c.Passes}.Append(make([]byte, 0, 128)))
}

// holderOf reads a value at a name for people: nil where nobody stands there.
func holderOf(value string, said *redisstore.Reader) *driver.Holder {
	if value == "" {
		return nil
	}
	id := holderID(value)
	if id == "" {
		h := redisstore.Foreign(value)
		return &h
	}
	h := driver.Holder{Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true}
	_, text := afterPlace(value)
	said.Describe(&h, text)
	h.PublicID, h.Broken = driver.PublicID(id), value[headLen] == '!'
	return &h
}

// afterPlace returns the channel and the information in a value of ours.
func afterPlace(value string) (channel, text string) {
	channel, text, _ = strings.Cut(value[fullLen:], " ")
	return channel, text
}

// record is a claim in the hash of claims, as the script line writes it: w ttl stop since channel
// set info.
type record struct {
	stop, since   time.Time // it is renewed until then, and stands there since
	channel, info string
}

func parseRecord(text string) (r record, ok bool) {
	f := strings.SplitN(text, " ", 7)
	if len(f) != 7 || f[0] != "w" {
		return r, false
	}
	stop, err := strconv.ParseInt(f[2], 10, 64)
	since, e := strconv.ParseInt(f[3], 10, 64)
	return record{time.UnixMilli(stop), time.UnixMilli(since), f[4], f[6]}, err == nil && e == nil
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// stride is how far the counter moves with a grant: twice as far as the tokens reach, so that its
// last bits are free.
const stride = 64

func roundUp(counter int64) int64 { return (counter + stride - 1) / stride * stride }

func proposalOf(now time.Time) string { return strconv.FormatInt(roundUp(now.UnixMicro()), 10) }
