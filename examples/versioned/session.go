package versioned

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// session is one liveness. What is true stands in the rows; here stands what this side was told.
type session struct {
	driver *Driver
	spec   driver.Spec

	mu     sync.Mutex
	places map[string]*place // by claim
	over   bool
}

// place is a claim that may stand in a row.
type place struct {
	name    string
	told    bool // the table has said that it stands there
	leaving bool // a Release was called
	unknown bool // and failed: it may have been carried out or not
}

// Valid implements [driver.Session].
func (s *session) Valid() time.Duration { return trusted(s.spec.TTL) }

// update is [Driver.update] for a session that goes on.
func (s *session) update(ctx context.Context, name string, change func(*document) (bool, error)) error {
	return s.driver.update(ctx, name, func(doc *document) (bool, error) {
		s.mu.Lock()
		over := s.over
		s.mu.Unlock()
		if over { // checked after the row was loaded: Close swaps it, so that nothing of now can be written later
			return false, driver.ErrSessionLost
		}
		return change(doc)
	})
}

// beat renews the claim.
func (s *session) beat(doc *document, id string) {
	doc.Lives[id] = life{Owner: s.spec.Owner, TTL: s.spec.TTL, Beat: doc.Lives[id].Beat + 1}
}

// state returns what the row says of the claim.
func state(doc *document, id string) (driver.Grant, error) {
	i := doc.Find(id)
	switch {
	case i < 0:
		return driver.Grant{}, driver.ErrGone
	case doc.Claims[i].Broken:
		return driver.Grant{}, driver.ErrBroken
	}
	return doc.Grant(i, doc.describe), nil
}

// Acquire implements [driver.Session].
func (s *session) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	s.mu.Lock()
	p := s.places[c.ID]
	if p == nil { // also if the answer will never come: Close and Renew look there
		p = &place{name: c.Name}
		s.places[c.ID] = p
	}
	told := p.told
	s.mu.Unlock()
	stands := false
	err = s.update(ctx, c.Name, func(doc *document) (bool, error) {
		if doc.Find(c.ID) < 0 && !told {
			mine := line.New(s.spec.ID, c)
			if err := doc.Admits(mine); err != nil {
				return false, err
			}
			if !c.Queue && !doc.Fits(mine) {
				g, stands = doc.Denied(doc.describe), false
				return false, nil
			}
			doc.Join(mine, time.Now())
			if err := doc.settle(); err != nil {
				return false, err
			}
		}
		s.beat(doc, c.ID)
		g, err = state(doc, c.ID)
		stands = err == nil
		return stands, err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil && stands:
		p.told = true
	case err == nil || errors.Is(err, driver.ErrRefused) && !told:
		delete(s.places, c.ID) // it stands nowhere, for certain
	}
	if err != nil {
		return driver.Grant{}, err
	}
	return g, nil
}

// Wait implements [driver.Session].
func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	look := func(ctx context.Context) (g driver.Grant, err error) {
		err = s.update(ctx, c.Name, func(doc *document) (bool, error) {
			g, err = state(doc, c.ID)
			return false, err
		})
		return g, err
	}
	if g, err := look(ctx); err != nil || g.Held {
		return g, err
	}
	return driver.Poll(ctx, soonest, latest, look)
}

// Release implements [driver.Session].
func (s *session) Release(ctx context.Context, c driver.Claim) (held bool, err error) {
	s.mu.Lock()
	p := s.places[c.ID]
	if p == nil {
		p = &place{name: c.Name}
	}
	p.leaving = true
	s.mu.Unlock()
	err = s.update(ctx, c.Name, func(doc *document) (bool, error) {
		_, held = doc.Leave(c.ID)
		return true, nil // whether it was there or not: an Acquire may be under way that nobody waits for
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		p.unknown = true // Renew tries again
		return false, err
	}
	delete(s.places, c.ID)
	return held, nil
}

// Renew implements [driver.Session].
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	r := driver.Renewal{Valid: s.Valid()}
	for name, places := range s.byName() {
		var gone []string
		err := s.update(ctx, name, func(doc *document) (write bool, _ error) {
			gone = nil
			for id, p := range places {
				_, err := state(doc, id)
				switch {
				case p.unknown: // as Release
					doc.Leave(id)
					gone, write = append(gone, id), true
				case err == nil:
					s.beat(doc, id)
					write = true
				default:
					gone = append(gone, id)
				}
			}
			return write, nil
		})
		if err != nil {
			return driver.Renewal{}, err
		}
		r.Lost = append(r.Lost, s.lost(gone)...)
	}
	return r, nil
}

// lost returns those of the claims that nobody here has released, and forgets those of which it is known now.
func (s *session) lost(gone []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(gone, func(id string) bool {
		p := s.places[id]
		if p != nil && p.unknown {
			delete(s.places, id)
		}
		return p == nil || p.leaving || !p.told
	})
}

// byName returns the places of each name as they are now.
func (s *session) byName() map[string]map[string]place {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]map[string]place{}
	for id, p := range s.places {
		if names[p.name] == nil {
			names[p.name] = map[string]place{}
		}
		names[p.name][id] = *p
	}
	return names
}

// Close implements [driver.Session].
func (s *session) Close(ctx context.Context) (err error) {
	s.driver.mu.Lock()
	delete(s.driver.sessions, s)
	s.driver.mu.Unlock()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	for _, name := range slices.Collect(maps.Keys(s.byName())) {
		e := s.driver.update(ctx, name, func(doc *document) (bool, error) {
			doc.Drop(func(c line.Claim) bool { return c.Session == s.spec.ID })
			return true, nil
		})
		if e != nil {
			err = e
		}
	}
	return err
}
