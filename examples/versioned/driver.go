package versioned

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// A Table is what the driver needs of a store. Its methods may be called concurrently, and return when their context ends.
type Table interface {
	// Load returns the value and the version of a row; a row that is not there has version 0.
	//
	//	SELECT value, version FROM locks WHERE name = $1
	Load(ctx context.Context, name string) (value []byte, version int64, err error)

	// CompareAndSwap writes the row with the next version, if it still has this one, and reports whether it has.
	//
	//	UPDATE locks SET value = $2, version = version + 1 WHERE name = $1 AND version = $3
	CompareAndSwap(ctx context.Context, name string, value []byte, version int64) (swapped bool, err error)
}

// Between these a waiter looks again, and a session may live.
const (
	soonest, latest = 5 * time.Millisecond, 250 * time.Millisecond
	minTTL, maxTTL  = 100 * time.Millisecond, time.Minute
)

// trusted is the part of ttl for which an owner trusts its claims: its clock may be slower than those of others by a hundredth.
func trusted(ttl time.Duration) time.Duration { return ttl - ttl/100 }

// Driver is a [driver.Driver]. It is safe for concurrent use.
type Driver struct {
	table Table

	mu       sync.Mutex
	seen     map[string]map[string]sighting // by name and claim
	sessions map[*session]struct{}
}

// sighting is a beat, and when it was first seen.
type sighting struct {
	beat uint64
	at   time.Time
}

// New returns a driver over table, which several processes share.
func New(table Table) *Driver {
	return &Driver{table: table, seen: map[string]map[string]sighting{}, sessions: map[*session]struct{}{}}
}

// Traits implements [driver.Driver]. What survives does so as far as the table keeps its rows.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Expires: true, Fence: driver.Durable,
		MinTTL: minTTL, MaxTTL: maxTTL, Grain: maxTTL,
		Survives: driver.Survival{Process: true, Restart: true, Machine: true},
	}
}

// Open implements [driver.Driver]. A session stands nowhere before it has claims, so it only sees whether the table answers.
func (d *Driver) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	if spec.TTL < minTTL || spec.TTL > maxTTL {
		return nil, fmt.Errorf("versioned: TTL %v is not between %v and %v: %w", spec.TTL, minTTL, maxTTL, driver.ErrRefused)
	}
	if _, _, err := d.table.Load(ctx, ""); err != nil {
		return nil, fmt.Errorf("versioned: open a session: %w", err)
	}
	s := &session{driver: d, spec: spec, places: map[string]*place{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[s] = struct{}{}
	return s, nil
}

// Close implements [driver.Driver].
func (d *Driver) Close(ctx context.Context) (err error) {
	d.mu.Lock()
	sessions := maps.Clone(d.sessions)
	d.mu.Unlock()
	for s := range sessions {
		if e := s.Close(ctx); e != nil {
			err = e
		}
	}
	return err
}

// document is the value of a row.
type document struct {
	line.Line
	Lives map[string]life // by claim
}

// life is what a claim needs besides its place.
type life struct {
	Owner driver.Owner
	TTL   time.Duration
	Beat  uint64
}

// update loads the row of name, drops what has expired, lets change do its part, and swaps the row if anything is to be
// written. It begins anew for as long as others are faster, so change may be called again.
func (d *Driver) update(ctx context.Context, name string, change func(*document) (write bool, err error)) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("versioned: the name %q is not UTF-8: %w", name, driver.ErrRefused)
	}
	for {
		value, version, err := d.table.Load(ctx, name)
		if err != nil {
			return fmt.Errorf("versioned: load %q: %w", name, err)
		}
		doc := document{Line: line.Line{Name: name}, Lives: map[string]life{}}
		if version > 0 {
			if err := json.Unmarshal(value, &doc); err != nil {
				return fmt.Errorf("versioned: the row %q is not one of this driver: %w", name, err)
			}
		}
		expired := doc.Drop(d.look(&doc))
		write, err := change(&doc)
		if err != nil || !write && expired == nil {
			return err
		}
		if err := doc.settle(); err != nil {
			return err
		}
		if value, err = json.Marshal(doc); err != nil {
			return fmt.Errorf("versioned: encode %q: %w", name, err)
		}
		if swapped, err := d.table.CompareAndSwap(ctx, name, value, version); err != nil {
			return fmt.Errorf("versioned: swap %q: %w", name, err) // nobody knows whether it was carried out
		} else if swapped {
			return nil
		}
	}
}

// look remembers the beats that stand in the row, which was loaded just now, and returns which have stood for too long.
func (d *Driver) look(doc *document) (over func(line.Claim) bool) {
	now := time.Now() // not before the answer: the beat is at least as old
	d.mu.Lock()
	defer d.mu.Unlock()
	before, seen := d.seen[doc.Name], map[string]sighting{}
	for id, l := range doc.Lives {
		if seen[id] = (sighting{l.Beat, now}); before[id].beat == l.Beat {
			seen[id] = before[id]
		}
	}
	if d.seen[doc.Name] = seen; len(seen) == 0 {
		delete(d.seen, doc.Name)
	}
	return func(c line.Claim) bool { return now.Sub(seen[c.ID].at) >= doc.Lives[c.ID].TTL }
}

// settle applies the rule, and forgets the lives of who has left. The row is never deleted, so its counter needs no clock as
// a seed.
func (doc *document) settle() error {
	maps.DeleteFunc(doc.Lives, func(id string, _ life) bool { return doc.Find(id) < 0 })
	_, err := doc.Settle(time.Now(), func(stored uint64, _ time.Time) (uint64, uint64, error) {
		return driver.Draw(stored, time.Time{})
	})
	return err
}

// describe returns c as people see it. When it goes is known to nobody: it depends on who looks.
func (doc *document) describe(c line.Claim) driver.Holder {
	h := c.Describe()
	h.Owner = doc.Lives[c.ID].Owner
	return h
}
