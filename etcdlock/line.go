package etcdlock

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// entry is a claim as its key says it.
type entry struct {
	value
	key         string
	lease       clientv3.LeaseID
	create, mod int64 // revisions
	foreign     bool
}

// line is the claims of one name by their create revisions, which is the order of their arrival.
type line struct {
	name    string
	entries []entry
	stray   string // a key under the name that is no claim's
}

// parseLine reads the keys under the prefix of a name. Keys of other names below it, behind one
// more slash, are not its claims. Package concurrency takes them for claims, so that a mutex there
// also waits for names below its own.
func parseLine(name, prefix string, kvs []*mvccpb.KeyValue) (line, error) {
	l := line{name: name}
	for _, kv := range kvs {
		e, is, err := parseEntry(prefix, kv)
		switch {
		case err != nil:
			return l, fmt.Errorf("name %q: %w", name, err)
		case is:
			l.entries = append(l.entries, e)
		case !strings.Contains(string(kv.Key[len(prefix):]), "/"):
			l.stray = string(kv.Key)
		}
	}
	l.sort()
	return l, nil
}

func (l *line) sort() {
	slices.SortStableFunc(l.entries, func(a, b entry) int { return cmp.Compare(a.create, b.create) })
}

// parseEntry reads a key under the prefix of a name and reports whether it is a claim's.
func parseEntry(prefix string, kv *mvccpb.KeyValue) (e entry, is bool, err error) {
	if !isSlot(string(kv.Key[len(prefix):]), kv.Lease) {
		return e, false, nil
	}
	e = entry{key: string(kv.Key), lease: clientv3.LeaseID(kv.Lease), create: kv.CreateRevision, mod: kv.ModRevision}
	ours, err := decode(kv.Value, &e.value)
	if err != nil {
		return e, true, err
	}
	if !ours {
		e.foreign, e.value = true, value{ID: driver.PublicID(e.key)}
		if len(kv.Value) <= maxNote && utf8.Valid(kv.Value) {
			e.Note = kv.Value // such as what a candidate of package concurrency proclaims
		}
	}
	if e.Kind == 0 {
		e.Kind, e.Weight, e.Limit = driver.Mutex, driver.All, driver.All
	}
	return e, true, nil
}

// maxNote is what the contract allows.
const maxNote = 256

// find returns the index of a key, or -1.
func (l *line) find(key string) int {
	return slices.IndexFunc(l.entries, func(e entry) bool { return e.key == key })
}

// holds reports whether the claim at i is held: the rule.
func (l *line) holds(i int) bool {
	return weigh(l.entries[:i+1]) <= int64(l.entries[i].Limit)
}

// fits reports whether c would be held if it joined now.
func (l *line) fits(c driver.Claim) bool {
	return weigh(l.entries)+int64(c.Weight) <= int64(c.Limit)
}

func weigh(entries []entry) (sum int64) {
	for _, e := range entries {
		sum += int64(e.Weight)
	}
	return sum
}

// admits returns an error if c cannot stand in this line. The key own is not looked at.
func (l *line) admits(c driver.Claim, own string) error {
	if l.stray != "" {
		return fmt.Errorf("name %q: the key %q is under it and is no lock's: want a name with nothing else under it: %w: %w", l.name, l.stray, driver.ErrRefused, driver.ErrBadData)
	}
	for _, e := range l.entries {
		if e.key != own && (e.Kind == driver.Permit) != (c.Kind == driver.Permit) {
			return fmt.Errorf("name %q is in use as a %s, so it cannot be a %s: use another name: %w", l.name, e.Kind, c.Kind, driver.ErrName)
		}
	}
	return nil
}

// maxRevision is the last revision that makes a token.
const maxRevision = math.MaxInt64 >> 16 // 2⁴⁷ − 1

// fence returns the token of a claim by its create revision: claims of one name that exclude each
// other are granted in the order of these.
func fence(kind driver.Kind, create int64) (uint64, error) {
	if create > maxRevision {
		return 0, fmt.Errorf("revision %d is beyond %d, the last one that makes a token: %w", create, int64(maxRevision), driver.ErrRefused)
	}
	if !kind.Exclusive() {
		return 0, nil
	}
	return uint64(create) * driver.Stride, nil
}

// holder returns the claim at i as it is shown to people, without its owner.
func (l *line) holder(i int) driver.Holder {
	e := l.entries[i]
	token, _ := fence(e.Kind, e.create)
	return driver.Holder{
		PublicID: e.ID, Kind: e.Kind, Weight: e.Weight, Limit: e.Limit, Held: l.holds(i), Broken: e.Broken,
		Foreign: e.foreign, Note: string(e.Note), Fence: token, Passes: e.Passes,
	}
}
