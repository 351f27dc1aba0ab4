package versioned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// A Table is what the driver needs of a store. Its methods may be called concurrently, and return when their context ends.
type Table interface {
	// Load returns the value and the version of a row; a row that is not there has version 0. A name is any bytes.
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

// Driver is a [driver.Driver]. It is safe for concurrent use.
type Driver struct {
	table    Table
	sessions sync.Map // those that are open

	mu   sync.Mutex
	seen map[string]map[string]sighting // by name and claim
}

// sighting is a beat, and when it was first seen.
type sighting struct {
	beat uint64
	at   time.Time
}

// New returns a driver over table, which several processes share.
func New(table Table) *Driver {
	return &Driver{table: table, seen: map[string]map[string]sighting{}}
}

// Traits implements [driver.Driver]. What survives does so as far as the table keeps its rows.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Expires: true, Fence: driver.Durable,
		MinTTL: minTTL, MaxTTL: maxTTL, Grain: maxTTL + maxTTL/100 + 2*latest,
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
	s := &session{driver: d, spec: spec, places: map[string]place{}}
	d.sessions.Store(s, nil)
	return s, nil
}

// Close implements [driver.Driver].
func (d *Driver) Close(ctx context.Context) (err error) {
	for s := range d.sessions.Range {
		err = errors.Join(err, s.(*session).Close(ctx))
	}
	return err
}

// document is the value of a row.
type document struct {
	line.Line
	Lives   map[string]life // by claim
	changed bool            // it is to be written
}

// life is what a claim needs besides its place.
type life struct {
	Owner driver.Owner
	TTL   time.Duration
	Beat  uint64
}

// update loads the row of name, drops what has expired, lets change do its part, applies the rule, and swaps the row if anything
// is to be written. It begins anew for as long as others are faster, so change may be called again. It returns what stands there
// now. The row is never deleted, so its counter of tokens needs no clock.
func (d *Driver) update(ctx context.Context, name string, change func(*document) error) (*document, error) {
	for {
		value, version, err := d.table.Load(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("versioned: load %q: %w", name, err)
		}
		doc := &document{Lives: map[string]life{}}
		if version > 0 {
			if err := json.Unmarshal(value, doc); err != nil {
				return nil, fmt.Errorf("versioned: the row %q is not one of this driver: %w", name, err)
			}
		}
		doc.Name = name // JSON keeps no bytes that are not UTF-8
		doc.changed = doc.Drop(d.expired(doc)) != nil
		if err := change(doc); err != nil || !doc.changed {
			return doc, err
		}
		if _, err := doc.Settle(time.Time{}, driver.Draw); err != nil {
			return nil, err
		}
		maps.DeleteFunc(doc.Lives, func(id string, _ life) bool { return doc.Find(id) < 0 })
		if value, err = json.Marshal(doc); err != nil {
			return nil, fmt.Errorf("versioned: encode %q: %w", name, err)
		}
		if swapped, err := d.table.CompareAndSwap(ctx, name, value, version); err != nil {
			return nil, fmt.Errorf("versioned: swap %q: %w", name, err) // nobody knows whether it was carried out
		} else if swapped {
			return doc, nil
		}
	}
}

// look is the change of who only looks.
func look(*document) error { return nil }

// expired remembers the beats that stand in the row, which was loaded just now, and reports which have stood for too long.
func (d *Driver) expired(doc *document) func(line.Claim) bool {
	now, seen := time.Now(), map[string]sighting{} // now is not before the answer: the beat is at least as old
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, l := range doc.Lives {
		if seen[id] = d.seen[doc.Name][id]; seen[id].beat != l.Beat {
			seen[id] = sighting{l.Beat, now}
		}
	}
	if d.seen[doc.Name] = seen; len(seen) == 0 {
		delete(d.seen, doc.Name)
	}
	return func(c line.Claim) bool { return now.Sub(seen[c.ID].at) >= doc.Lives[c.ID].TTL }
}

// state returns how a claim stands.
func (doc *document) state(id string) (driver.Grant, error) {
	i := doc.Find(id)
	switch {
	case i < 0:
		return driver.Grant{}, driver.ErrGone
	case doc.Claims[i].Broken:
		return driver.Grant{}, driver.ErrBroken
	}
	return doc.Grant(i, doc.describe), nil
}

// describe returns c as people see it. Since when it stands nobody says, without a clock; when it goes depends on who looks.
func (doc *document) describe(c line.Claim) driver.Holder {
	h := c.Describe()
	h.Owner = doc.Lives[c.ID].Owner
	return h
}

// The optional half: with it people can look into a line, and take a claim away.
var _ driver.Inspector = (*Driver)(nil)

// Lines implements [driver.Inspector]: a [Table] cannot list its rows.
func (d *Driver) Lines(context.Context, string) ([]driver.Line, error) {
	return nil, fmt.Errorf("versioned: rows cannot be listed: %w", errors.ErrUnsupported)
}

// Line implements [driver.Inspector].
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	doc, err := d.update(ctx, name, look)
	if err != nil {
		return driver.Line{}, err
	}
	l := driver.Line{Name: name, Fence: doc.Fence}
	for _, c := range doc.Claims {
		l.Claims = append(l.Claims, doc.describe(c))
	}
	return l, nil
}

// Break implements [driver.Inspector]. The owner of a claim that is marked hears of it at its next Renew.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	_, err := d.update(ctx, name, func(doc *document) error {
		_, err := doc.Break(publicID, fence, now)
		doc.changed = true
		return err
	})
	return err
}
