package versioned

import (
	"context"
	"errors"
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
	places map[string]place // by claim
}

// place is a claim that may stand in a row.
type place struct {
	name  string
	stage stage
}

// stage is how far a claim has come, in order.
type stage int

const (
	asked   stage = iota + 1 // an Acquire was called
	told                     // the table has said that it stands there
	leaving                  // a Release was called
	unsure                   // and failed: it may have been carried out or not
)

// Valid implements [driver.Session]. The clock of an owner may be slower than those of others by a hundredth.
func (s *session) Valid() time.Duration { return s.spec.TTL - s.spec.TTL/100 }

// update is [Driver.update] for a session that goes on. It calls change with s.mu held. Whether the session is closed is looked at
// after the row was loaded, and before a place is noted: Close swaps the rows of all places, so that nothing of now comes later.
func (s *session) update(ctx context.Context, name string, change func(*document) error) (*document, error) {
	return s.driver.update(ctx, name, func(doc *document) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, open := s.driver.sessions.Load(s); !open {
			return driver.ErrSessionLost
		}
		return change(doc)
	})
}

// reach notes how far a claim has come.
func (s *session) reach(c driver.Claim, at stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at > s.places[c.ID].stage {
		s.places[c.ID] = place{c.Name, at}
	}
}

// forget forgets claims that stand in no row, for certain.
func (s *session) forget(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.places, id)
	}
}

// names returns the rows in which claims may stand.
func (s *session) names() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for _, p := range s.places {
		names[p.name] = true
	}
	return names
}

// beat renews a claim that stands in the row.
func (s *session) beat(doc *document, id string) error {
	_, err := doc.state(id)
	if err == nil {
		doc.Lives[id] = life{Owner: s.spec.Owner, TTL: s.spec.TTL, Beat: doc.Lives[id].Beat + 1}
		doc.changed = true
	}
	return err
}

// Acquire implements [driver.Session].
func (s *session) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	doc, err := s.update(ctx, c.Name, func(doc *document) error {
		if s.places[c.ID].stage <= asked && doc.Find(c.ID) < 0 {
			delete(s.places, c.ID)
			mine := line.New(s.spec.ID, c)
			if err := doc.Admits(mine); err != nil {
				return err
			}
			if !c.Queue && !doc.Fits(mine) {
				return nil
			}
			doc.Join(mine, time.Time{})
			s.places[c.ID] = place{c.Name, asked} // also if the answer will never come: Close and Renew look there
		}
		return s.beat(doc, c.ID)
	})
	switch {
	case err != nil:
		return driver.Grant{}, err
	case doc.Find(c.ID) < 0:
		return doc.Denied(doc.describe), nil
	}
	s.reach(c, told)
	return doc.state(c.ID)
}

// Wait implements [driver.Session].
func (s *session) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, soonest, latest, func(ctx context.Context) (driver.Grant, error) {
		doc, err := s.update(ctx, c.Name, look)
		if err != nil {
			return driver.Grant{}, err
		}
		return doc.state(c.ID)
	})
}

// Release implements [driver.Session].
func (s *session) Release(ctx context.Context, c driver.Claim) (held bool, err error) {
	s.reach(c, leaving)
	_, err = s.update(ctx, c.Name, func(doc *document) error {
		_, held = doc.Leave(c.ID)
		doc.changed = true // whether it was there or not: an Acquire may be under way that nobody waits for
		return nil
	})
	if err != nil {
		s.reach(c, unsure) // Renew tries again
		return false, err
	}
	s.forget(c.ID)
	return held, nil
}

// Renew implements [driver.Session].
func (s *session) Renew(ctx context.Context) (driver.Renewal, error) {
	r := driver.Renewal{Valid: s.Valid()}
	for name := range s.names() {
		var lost []driver.Loss
		var left []string
		_, err := s.update(ctx, name, func(doc *document) error {
			lost, left = nil, nil
			doc.changed = true // the swap shows that nobody came or went between the load and this look at the places
			for id, p := range s.places {
				switch {
				case p.name != name:
				case p.stage == unsure: // as Release
					doc.Leave(id)
					left = append(left, id)
				default:
					if err := s.beat(doc, id); err != nil && p.stage == told {
						lost = append(lost, driver.Loss{ID: id, Err: err})
					}
				}
			}
			return nil
		})
		if err != nil {
			return driver.Renewal{}, err
		}
		s.forget(left...)
		r.Lost = append(r.Lost, lost...)
	}
	return r, nil
}

// Close implements [driver.Session].
func (s *session) Close(ctx context.Context) (err error) {
	if _, open := s.driver.sessions.LoadAndDelete(s); !open {
		return nil // with its driver
	}
	for name := range s.names() {
		_, e := s.driver.update(ctx, name, func(doc *document) error {
			doc.Drop(func(c line.Claim) bool { return c.Session == s.spec.ID })
			doc.changed = true
			return nil
		})
		err = errors.Join(err, e)
	}
	return err
}
