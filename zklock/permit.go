package zklock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// A semaphore, as Curator's InterProcessSemaphoreV2 has it, is a line of claims that wait, and a
// lease for each permit that is taken: the first in line takes its leases when there is room for
// them, and leaves the line. Curator makes a lease before there is room, and waits beside it. Here
// one transaction makes the leases and leaves the line, so that every lease is held.
const (
	waitingPart = "/locks"
	leasesPart  = "/leases"
	mutexTag    = "mutex-" // in the names of a mutex that is a semaphore of one
)

// maxLeases is the largest limit under which each permit is a node, as Curator counts them. Under a
// larger one a claim is one node, whose name has its weight.
const maxLeases = 1000

// A server closes the connection over which a request of more than maxRequest bytes comes, unless
// its jute.maxbuffer says otherwise. Each lease of a transaction takes up to leaseBytes beside the
// path of the lock's node.
const (
	maxRequest = 1<<20 - 1
	leaseBytes = 150
)

// semaphoreOf returns the line of a semaphore by the children of both parts. Epoch is the change
// that made the part for claims that wait: numbers begin anew when the servers have removed it and
// it is made again. The names of ours have weight and limit, and those of leases also epoch and
// number of the place in line that was left: clients need not agree on the limit, and a holder may
// have been let in past claims that want more than there is. Other libraries' leases are ahead of
// all.
func semaphoreOf(top string, waits, leases []string, epoch int64) []place {
	var ahead, line []place
	var last string
	for _, child := range slices.Sorted(slices.Values(leases)) {
		p, rest := permitOf(child)
		p.nodes, p.lease = []string{top + leasesPart + "/" + child}, true
		into, made := &line, int64(0)
		if _, err := fmt.Sscanf(rest, "%x.%d-lease-", &made, &p.number); err != nil || p.foreign || made != epoch {
			into = &ahead
		}
		claim, _, ours := strings.Cut(child, "-lease-")
		// One claim's leases are one place, and follow each other here.
		if ours && !p.foreign && claim == last {
			at := &(*into)[len(*into)-1]
			at.nodes = append(at.nodes, p.nodes...)
			continue
		}
		last = claim
		*into = append(*into, p)
	}
	for _, child := range waits {
		var ok bool
		p, _ := permitOf(child)
		p.nodes = []string{top + waitingPart + "/" + child}
		if p.number, ok = numberOf(child); ok {
			line = append(line, p)
		}
	}
	sorted(line)
	return append(ahead, line...)
}

// prefixLen is the length of what prefixOf returns.
const prefixLen = len("_c_00000000-0000-0000-0000-000000000000-")

// permitOf reads the name of a semaphore's child up to weight and limit, and returns the rest.
func permitOf(child string) (p place, rest string) {
	if strings.HasPrefix(child, "_c_") && len(child) > prefixLen {
		rest = child[prefixLen:]
		if rest, ok := strings.CutPrefix(rest, mutexTag); ok {
			return place{kind: driver.Mutex, weight: 1, limit: 1}, rest
		}
		p.kind = driver.Permit
		if _, err := fmt.Sscanf(rest, "%d-%d-", &p.weight, &p.limit); err == nil && 1 <= p.weight && p.weight <= p.limit && p.limit <= driver.All {
			return p, strings.SplitN(rest, "-", 3)[2]
		}
	}
	return place{kind: driver.Permit, weight: 1, foreign: true}, ""
}

// leaseCount returns how many nodes a claim of permits has when it is held.
func leaseCount(c driver.Claim) int {
	if c.Limit > maxLeases {
		return 1
	}
	return c.Weight
}
