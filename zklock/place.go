package zklock

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// A place is a child of a lock's node that stands in its line: whatever ends in a number as servers give it. So those of other libraries keep us out,
// also where we do not keep them out.
type place struct {
	node   string
	number int32
}

// digits is how many a number has at least, with its sign.
const digits = 10

// placeOf reads the name of a child. The numbers of one parent go on after the largest with the smallest, which is written with its sign.
func placeOf(child string) (place, bool) {
	at := len(child) - digits
	if at < 0 {
		return place{}, false
	}
	text := child[at:]
	if strings.HasSuffix(child[:at], "--") || strings.HasSuffix(child[:at], "_-") {
		text = "-" + text
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return place{child, int32(n)}, err == nil && text[0] != '+' && (text[0] != '-' || n < 0)
}

// placesOf returns the line that children make.
func placesOf(children []string) []place {
	var line []place
	for _, child := range children {
		if p, ok := placeOf(child); ok {
			line = append(line, p)
		}
	}
	slices.SortFunc(line, func(a, b place) int {
		if d := a.number - b.number; d != 0 { // less than half of all numbers stand in a line, so the difference says who was first
			return int(d)
		}
		return strings.Compare(a.node, b.node)
	})
	return line
}

// prefixOf begins the names of the nodes of one claim, as Curator's protection does. It has a hash of the claim's ID, of which the public id is the beginning: who
// reads it can release nothing.
func prefixOf(id string) string {
	sum := hashOf(id)
	h := hex.EncodeToString(sum[:16])
	return "_c_" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:] + "-"
}

// publicID is that of a claim of ours by its node's name, and of a foreign one it is made of the name.
func publicID(node string, foreign bool) string {
	if rest, ok := strings.CutPrefix(node, "_c_"); ok && !foreign && len(rest) > 13 {
		return rest[:8] + rest[9:13]
	}
	return driver.PublicID(node)
}

// find returns the node of a claim, or "".
func find(children []string, prefix string) string {
	if i := slices.IndexFunc(children, func(child string) bool { return strings.HasPrefix(child, prefix) }); i >= 0 {
		return children[i]
	}
	return ""
}

// record is what we write into a node, for people.
type record struct {
	Interlock int             `json:"interlock"` // the version of this record
	Owner     json.RawMessage `json:"owner"`
	Note      []byte          `json:"note,omitempty"`
	Passes    int             `json:"passes,omitempty"`
}

func encode(owner driver.Owner, c driver.Claim) []byte {
	b, err := json.Marshal(record{1, owner.Encode(), []byte(c.Note), c.Passes})
	if err != nil {
		panic("zklock: encode a record: " + err.Error()) // its parts are valid
	}
	return b
}

// holderOf shows the claim of a node. What another program wrote there is its name.
func holderOf(node string, get *zk.Call, first bool) driver.Holder {
	h := driver.Holder{Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: first, Broken: get.Stat.Version != 0}
	var r record
	if err := json.Unmarshal(get.Data, &r); err == nil && r.Interlock > 0 {
		h.Owner, h.Note, h.Passes = driver.DecodeOwner(r.Owner), string(r.Note), r.Passes
	} else {
		h.Foreign, h.Owner.Name = true, strings.ToValidUTF8(string(get.Data), "?")
	}
	h.PublicID = publicID(node, h.Foreign)
	if first {
		h.Fence = tokenOf(get.Stat.Czxid)
	} else {
		h.Since = time.UnixMilli(get.Stat.Ctime) // when it came; nobody writes down when it was granted
	}
	return h
}

// maxZxid is the last change whose tokens JSON carries exactly, with some room. It is in the ensemble's 32,767th epoch.
const maxZxid = 1<<47 - 1

// tokenOf is the lowest token of who stands in line by that change.
func tokenOf(czxid int64) uint64 { return uint64(czxid) * driver.Stride } //nolint:gosec // never negative
