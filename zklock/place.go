package zklock

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// A place is a claim in a line, as the names of nodes tell it. Every child of a lock's node that
// ends in a number as servers give it is in the line: claims of other libraries keep ours out, also
// where ours do not keep theirs out.
type place struct {
	nodes         []string // its path; of a holder of permits those of its leases
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

// digits is the least length of a number, with its sign.
const digits = 10

// lastNumber is the last number that a parent gives out. Later children get it again, or the
// smallest and those after it, which are written with their sign: such numbers do not tell who came
// first, so no claim of ours stays in line with one.
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

// placesOf returns the line of a lock by the children of its node.
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

// holds reports whether the claim at that place is held: the weights up to its own are within its
// limit.
func holds(line []place, at int) bool {
	var sum int64
	for _, p := range line[:at+1] {
		sum += int64(p.weight)
	}
	return line[at].lease || sum <= int64(line[at].limit)
}

// inWay returns the nearest claim ahead that keeps the one at that place, which is not held, from
// being held, or -1. Readers pass each other.
func inWay(line []place, at int) int {
	i := at - 1
	for ; i >= 0; i-- {
		if line[at].kind != driver.Read || line[i].weight == driver.All {
			break
		}
	}
	return i
}

// blockerOf returns the first claim ahead that alone keeps the one at that place from being held,
// or -1.
func blockerOf(line []place, at int) int {
	return slices.IndexFunc(line[:at], func(p place) bool { return line[at].kind != driver.Read || p.weight == driver.All })
}

// placeOf returns the place of a node, or -1.
func placeOf(line []place, node string) int {
	return slices.IndexFunc(line, func(p place) bool { return slices.Contains(p.nodes, node) })
}

// hashOf is the part of nodes' names that is made of a claim's ID. The public ID is the beginning
// of it: nobody can release a claim by what he reads there.
func hashOf(id string) string {
	sum := sha256.Sum256([]byte("interlock:" + id))
	return hex.EncodeToString(sum[:16])
}

// prefixOf begins the names of the nodes of one claim, as Curator's protection does.
func prefixOf(id string) string {
	h := hashOf(id)
	return "_c_" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:] + "-"
}
