package zklock

import (
	"encoding/json"
	"path"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// record is the data of a node, for people.
type record struct {
	Interlock int             `json:"interlock"` // the version of the record
	Owner     json.RawMessage `json:"owner"`
	Note      []byte          `json:"note,omitempty"`
	Passes    int             `json:"passes,omitempty"`
	Writes    bool            `json:"write,omitempty"` // it is no mutex, where the name does not say
}

func encode(owner []byte, c driver.Claim) []byte {
	b, err := json.Marshal(record{1, owner, []byte(c.Note), c.Passes, c.Kind == driver.Write})
	if err != nil {
		panic("zklock: encode a record: " + err.Error()) // its parts are valid
	}
	return b
}

// holderOf returns the claim of a node as it is shown to people. What another program wrote there
// is shown as its name.
func holderOf(p place, get *zk.Call, held bool) driver.Holder {
	h := driver.Holder{Kind: p.kind, Weight: p.weight, Limit: p.limit, Held: held, Broken: get.Stat.Version != 0}
	if p.kind == driver.Mutex {
		h.Weight, h.Limit = driver.All, driver.All
	}
	var r record
	if err := json.Unmarshal(get.Data, &r); err == nil && r.Interlock > 0 {
		h.Owner, h.Note, h.Passes = driver.DecodeOwner(r.Owner), string(r.Note), r.Passes
		if r.Writes {
			h.Kind = driver.Write
		}
	} else {
		h.Foreign, h.Owner.Name = true, strings.ToValidUTF8(string(get.Data), "?")
	}
	h.PublicID = publicID(path.Base(p.nodes[0]), h.Foreign)
	if held && p.kind.Exclusive() && get.Stat.Czxid <= maxZxid {
		h.Fence = tokenOf(get.Stat.Czxid)
	}
	if get.Err == nil && (!held || p.lease) {
		// When it joined, or took its lease; when another claim was granted is stored nowhere.
		h.Since = time.UnixMilli(get.Stat.Ctime)
	}
	return h
}

// maxZxid is the last change whose tokens JSON carries exactly, with some room. It is in the
// ensemble's 32,767th epoch.
const maxZxid = 1<<47 - 1

// tokenOf returns the lowest token of the claim whose node that change made.
func tokenOf(czxid int64) uint64 { return uint64(czxid) * driver.Stride } //nolint:gosec // never negative

// publicID returns the public ID of a claim, by its node's name. That of a foreign claim is made of
// the whole name.
func publicID(node string, foreign bool) string {
	if hash := strings.ReplaceAll(strings.TrimPrefix(node, "_c_"), "-", ""); !foreign && len(hash) > 12 {
		return hash[:12]
	}
	return driver.PublicID(node)
}
