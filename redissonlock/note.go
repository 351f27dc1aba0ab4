package redissonlock

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lazyregexp"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// appendNote writes the part of a claim's note that does not change: its public id and its info.
// owner is encoded already, once for a session.
func appendNote(b, owner []byte, c driver.Claim) []byte {
	b = append(append(b, driver.PublicID(c.ID)...), ' ')
	return redisstore.Info{Owner: owner, Note: c.Note, Passes: c.Passes}.Append(b)
}

// note is a note as the scripts keep it: state kind token since stop public info.
type note struct {
	state       string // h held, w waits, b broken, x released
	kind        driver.Kind
	token       uint64
	since, stop time.Time
	public      string
	info        redisstore.Info
}

func parseNote(text string) (n note, ok bool) {
	f := strings.SplitN(text, " ", 7)
	if len(f) != 7 {
		return n, false
	}
	var numbers [3]uint64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseUint(f[i+2], 10, 63); err != nil {
			return n, false
		}
	}
	n = note{
		state: f[0], kind: redisstore.KindOf(f[1]), token: numbers[0], public: f[5],
		since: time.UnixMilli(int64(numbers[1])), stop: time.UnixMilli(int64(numbers[2])), //nolint:gosec // 63 bits
	}
	return n, n.kind != 0 && json.Unmarshal([]byte(f[6]), &n.info) == nil
}

// holder describes a claim of ours by its note.
func (n note) holder() driver.Holder {
	h := driver.Holder{
		PublicID: n.public, Kind: n.kind, Weight: driver.All, Limit: driver.All, Broken: n.state == "b", Held: n.state != "w",
		Fence: n.token, Since: n.since,
	}
	n.info.Tell(&h)
	if n.kind == driver.Read {
		h.Weight = 1
	}
	return h
}

// thread is the field of a client of Redisson: its id, the number of the thread, and whether it
// writes.
var thread = lazyregexp.New(`^([0-9a-f]{8})-[0-9a-f-]{27}:(-?\d+)(:write)?$`)

// foreign describes a field that another program wrote. With the whole field one could unlock what
// it holds, so people see a hash of it, and so much that they find the client.
func foreign(field, mode, count string) driver.Holder {
	h := redisstore.Foreign(field)
	f := thread.FindStringSubmatch(field)
	switch {
	case f == nil:
		h.Note = "a field that Redisson does not write: it looks like somebody's data, not like a lock"
		return h
	case f[3] != "":
		h.Kind = driver.Write
	case mode != "":
		h.Kind, h.Weight = driver.Read, 1
	}
	h.Note = fmt.Sprintf("Redisson client %s…, thread %s", f[1], f[2])
	if count != "" && count != "1" {
		h.Note += ", " + count + " holds"
	}
	return h
}

// inWay describes what a claim waits for: a field and its note, as the script answers them.
func inWay(field, text string, kind driver.Kind) *driver.Holder {
	if field == "" {
		return nil
	}
	if n, ok := parseNote(text); ok {
		h := n.holder()
		h.Held = true
		return &h
	}
	mode := ""
	if kind != driver.Mutex {
		mode = "read"
	}
	h := foreign(field, mode, "")
	return &h
}
