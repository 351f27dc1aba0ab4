package memcachedlock

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/sessions"
)

// state is how a claim stands. It only moves forward.
type state uint8

const (
	out     state = iota // or nothing is known
	waiting              // which the server does not know
	held
	gone
	broken
)

// claim is one claim of a session, whose mutex guards it.
type claim struct {
	driver.Claim
	sessions.Departure
	key    string
	server *memcache.Client
	state  state
	holder *driver.Holder
	fence  uint64
	cas    uint64 // of its item, as far as is known; 0: not at all
	unsure bool   // an Acquire had no answer, and may have taken the lock
}

// rounds is how often one call asks before it gives up: each time something else had come in between.
const rounds = 8

// errRestless: an item changes each time before what was asked about it arrives.
var errRestless = fmt.Errorf("the item changes all the time")

// each does something to the items of claims, by the versions that are known: what do makes of the claim's version. One whose version is not
// known, or another one by now, is looked at first. What became of each is in the result: Done, or NotFound where its item is not there any
// more; and what went wrong for those whose server did not say. The claims of a server are asked for together. One for which do returns
// nothing is left alone.
func (s *session) each(ctx context.Context, claims []*claim, do func(c *claim) memcache.Request) (became map[*claim]memcache.Status, failed map[*claim]error) {
	became, failed = map[*claim]memcache.Status{}, map[*claim]error{}
	by := map[*memcache.Client][]*claim{}
	for _, c := range claims {
		by[c.server] = append(by[c.server], c)
	}
	var mu sync.Mutex
	one := func(server *memcache.Client, claims []*claim) {
		last := errRestless
		for range rounds {
			var again []*claim
			var requests []memcache.Request
			s.mu.Lock()
			claims = slices.DeleteFunc(claims, func(c *claim) bool {
				r := do(c)
				if r != nil && c.cas == 0 {
					r = memcache.Get(c.key)
				}
				if r != nil {
					requests = append(requests, r)
				}
				return r == nil
			})
			s.mu.Unlock()
			if len(claims) == 0 {
				return
			}
			replies, err := server.Do(ctx, requests...)
			if last = err; err != nil {
				break
			}
			mu.Lock()
			for i, c := range claims {
				switch status, err := s.learn(c, replies[i]); {
				case err != nil:
					failed[c] = err
				case status == memcache.Changed:
					again = append(again, c)
				default:
					became[c] = status
				}
			}
			mu.Unlock()
			if claims, last = again, errRestless; len(claims) == 0 {
				return
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, c := range claims {
			failed[c] = last
		}
	}
	var all sync.WaitGroup
	for server, claims := range by {
		if len(by) == 1 {
			one(server, claims)
			break
		}
		all.Go(func() { one(server, claims) })
	}
	all.Wait()
	return became, failed
}

// learn takes in what a server says of a claim's item: Changed where it is to be asked again, by the version that is known now or after a
// look, and else Done or NotFound.
func (s *session) learn(c *claim, r memcache.Reply) (memcache.Status, error) {
	if r.Err != nil {
		return "", r.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Status {
	case memcache.Done:
		c.cas = r.CAS // 0 where it is deleted
		return memcache.Done, nil
	case memcache.Changed:
		c.cas = 0
		return memcache.Changed, nil
	case memcache.Value:
		it, err := read(r)
		switch {
		case err != nil:
			return "", err
		case it.foreign || it.ID != c.ID || it.Name != c.Name:
			return memcache.NotFound, nil
		case it.Broken:
			c.state = broken
		}
		c.cas, c.fence = r.CAS, it.Fence
		return memcache.Changed, nil
	}
	return memcache.NotFound, nil
}
