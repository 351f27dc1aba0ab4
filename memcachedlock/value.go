package memcachedlock

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lazyregexp"
	"github.com/interlock-go/interlock/internal/memcache"
)

// value is the value of an item, in JSON behind the layout. Any other value is another program's.
type value struct {
	Name   string          `json:"name"`
	ID     string          `json:"id"`
	Owner  json.RawMessage `json:"owner,omitempty"`
	Note   []byte          `json:"note,omitempty"`
	Passes int             `json:"passes,omitempty"`
	Fence  uint64          `json:"fence,omitempty"` // since the item was written once more, and has another version
	Broken bool            `json:"broken,omitempty"`
}

const layout = "il1"

// ours matches how values of every layout of this package begin.
var ours = lazyregexp.New(`^il[1-9]\{`)

func (v value) encode() []byte {
	owner := v.Owner
	v.Owner = nil
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("memcachedlock: encode: %v", err)) // strings and numbers cannot fail
	}
	if b = slices.Concat([]byte(layout), b); owner != nil { // Marshal would parse it each time
		b = slices.Concat(b[:len(b)-1], []byte(`,"owner":`), owner, []byte("}"))
	}
	return b
}

// item is what a server has at a key.
type item struct {
	memcache.Reply
	value
	foreign bool
}

// look returns the item at a key, or nil.
func look(ctx context.Context, server *memcache.Client, key string) (*item, error) {
	if err := memcache.CheckKey(key); err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrRefused, err)
	}
	r, err := server.Do(ctx, memcache.Get(key))
	if err != nil || r.Status != memcache.Value {
		return nil, err
	}
	return read(r)
}

// read reads the answer to a Get. An item that a later version of this package wrote is an error.
func read(r memcache.Reply) (it *item, err error) {
	it = &item{Reply: r}
	text, current := strings.CutPrefix(string(r.Value), layout)
	if !current && ours.Match(r.Value) {
		return nil, fmt.Errorf("%w: layout %c was written by a newer version of Interlock: want the same version everywhere", driver.ErrRefused, text[2])
	}
	it.foreign = !current || json.Unmarshal([]byte(text), &it.value) != nil || it.ID == ""
	if !it.foreign && it.Fence == 0 {
		it.Fence, err = token(r)
	}
	return it, err
}

// of reports whether the item is that of a claim.
func (it *item) of(c driver.Claim) bool { return !it.foreign && it.ID == c.ID && it.Name == c.Name }

// token returns the lowest of the tokens that a grant reserves: it is made of the version that the
// item got when it was added, and of when the server was started.
func token(r memcache.Reply) (uint64, error) {
	started := uint64(max(r.Start, 0)) * uint64(time.Second/time.Microsecond)
	if r.CAS == 0 || r.CAS > (driver.MaxFence-started)/driver.Stride-1 {
		return 0, fmt.Errorf("%w: version %d of a server that was started at %d s gives no token: want a memcached with versions that begin at 1, and a clock that is right", driver.ErrRefused, r.CAS, r.Start)
	}
	return started + r.CAS*driver.Stride, nil
}

// show returns the item as it is shown to people.
func (it *item) show() *driver.Holder {
	h := &driver.Holder{Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true}
	if it.Left >= 0 {
		h.Until = time.Now().Add(time.Duration(it.Left) * time.Second)
	}
	if it.foreign {
		h.Foreign, h.PublicID = true, driver.PublicID(fmt.Sprintf("%d %s", it.CAS, it.Reply.Value))
		h.Note = strings.ToValidUTF8(string(it.Reply.Value[:min(len(it.Reply.Value), 128)]), "?")
		return h
	}
	h.PublicID, h.Owner, h.Note = driver.PublicID(it.ID), driver.DecodeOwner(it.Owner), string(it.Note)
	h.Passes, h.Fence, h.Broken = it.Passes, it.Fence, it.Broken
	return h
}
