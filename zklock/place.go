package zklock

import (
	"cmp"
	"encoding/json"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// A place is a claim in a line, as the names of nodes say it. In the line of a lock stands whatever ends in a number as servers give it, so those of other libraries keep us out,
// also where we do not keep them out.
type place struct {
	nodes         []string // its path; of a semaphore's holder those of its leases
	number        int32
	kind          driver.Kind
	weight, limit int // the limit is 0 where another library's client keeps it to itself
	lease         bool
	foreign       bool
}

// What stands in a node's name before its number.
var (
	curatorTags = map[driver.Kind]string{driver.Mutex: "lock-", driver.Write: "__WRIT__", driver.Read: "__READ__"}
	kazooTags   = map[driver.Kind]string{driver.Mutex: "__lock__", driver.Write: "__lock__", driver.Read: "__rlock__"}
)

// digits is how many a number has at least, with its sign.
const digits = 10

// lastNumber is the last that a parent gives out. Later children get it again, or the smallest and those after it, which are written with their sign: that says
// nothing of who came first, so none of ours stands in line with such a number.
const lastNumber = math.MaxInt32

// numberOf reads the number at the end of a child's name.
func numberOf(child string) (int32, bool) {
	at := len(child) - digits
	if at < 0 {
		return 0, false
	}
	text := child[at:]
	if strings.HasSuffix(child[:at], "--") || strings.HasSuffix(child[:at], "_-") {
		text = "-" + text
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && text[0] != '+' && (text[0] != '-' || n < 0)
}

// placesOf returns the line that the children of a lock's node make.
func placesOf(dir string, children []string) []place {
	var line []place
	for _, child := range children {
		n, ok := numberOf(child)
		if !ok {
			continue
		}
		p := place{nodes: []string{dir + "/" + child}, number: n, kind: driver.Mutex, weight: driver.All, limit: driver.All}
		switch {
		case strings.Contains(child, curatorTags[driver.Read]), strings.Contains(child, kazooTags[driver.Read]):
			p.kind, p.weight = driver.Read, 1
		case strings.Contains(child, curatorTags[driver.Write]):
			p.kind = driver.Write
		}
		line = append(line, p)
	}
	sorted(line)
	return line
}

func sorted(line []place) {
	slices.SortFunc(line, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.nodes[0], b.nodes[0]))
	})
}

// holds is the rule: what stands ahead of it, and it itself, are within its limit.
func holds(line []place, at int) bool {
	var sum int64
	for _, p := range line[:at+1] {
		sum += int64(p.weight)
	}
	return line[at].lease || sum <= int64(line[at].limit)
}

// inWay returns the nearest claim ahead that does not go with that one, which does not hold, or -1. Readers pass each other.
func inWay(line []place, at int) int {
	i := at - 1
	for ; i >= 0; i-- {
		if line[at].kind != driver.Read || line[i].weight == driver.All {
			break
		}
	}
	return i
}

// barOf returns the first claim ahead that alone keeps that one from holding, or -1.
func barOf(line []place, at int) int {
	return slices.IndexFunc(line[:at], func(p place) bool { return line[at].kind != driver.Read || p.weight == driver.All })
}

// placeOf returns where a node stands, or -1.
func placeOf(line []place, node string) int {
	return slices.IndexFunc(line, func(p place) bool { return slices.Contains(p.nodes, node) })
}

// prefixOf begins the names of the nodes of one claim, as Curator's protection does.
func prefixOf(id string) string {
	h := hashOf(id)
	return "_c_" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:] + "-"
}

// publicID is that of a claim of ours by its node's name, and of a foreign one it is made of the name.
func publicID(node string, foreign bool) string {
	if hash := strings.ReplaceAll(strings.TrimPrefix(node, "_c_"), "-", ""); !foreign && len(hash) > 12 {
		return hash[:12]
	}
	return driver.PublicID(node)
}

// record is what we write into a node, for people.
type record struct {
	Interlock int             `json:"interlock"` // the version of this record
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

// holderOf shows the claim of a node. What another program wrote there is its name.
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
		h.Since = time.UnixMilli(get.Stat.Ctime) // when it came, or took its lease; nobody writes down when another claim was granted
	}
	return h
}

// maxZxid is the last change whose tokens JSON carries exactly, with some room. It is in the ensemble's 32,767th epoch.
const maxZxid = 1<<47 - 1

// tokenOf is the lowest token of who stands in line by that change.
func tokenOf(czxid int64) uint64 { return uint64(czxid) * driver.Stride } //nolint:gosec // never negative
