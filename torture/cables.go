//go:build linux || darwin

package torture

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	proxy "github.com/interlock-go/interlock/internal/wire"
)

// cables are the links between the workers of a round and one server: for every slot a proxy, over which go all bytes of
// all lives of that slot. A link that fails here fails as networks do: what was sent before a stall arrives after it,
// also when its sender has given up, hung up or died.
type cables struct {
	target string
	wires  []*proxy.Wire
	ttl    time.Duration
	over   chan struct{} // closed when all must be whole again

	mu      sync.Mutex
	struck  []bool // by slot
	faults  []fault
	strikes atomic.Int64
	all     sync.WaitGroup
}

// lay opens a cable to the server at target for each of n slots. Each packet takes up to twice delay, half of it at random.
func lay(ctx context.Context, target string, n int, delay, ttl time.Duration) (*cables, error) {
	c := &cables{target: target, ttl: ttl, over: make(chan struct{}), struck: make([]bool, n)}
	for range n {
		w, err := proxy.Listen(ctx, target)
		if err != nil {
			c.remove()
			return nil, err
		}
		w.Delay(delay, delay)
		c.wires = append(c.wires, w)
	}
	return c, nil
}

// url is the store's URL as the worker of a slot must use it.
func (c *cables) url(store string, slot int) string {
	return strings.Replace(store, c.target, c.wires[slot].Addr(), 1)
}

// free reports whether nothing is wrong with a slot's cable.
func (c *cables) free(slot int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.struck[slot]
}

// damaged is how many cables are not whole.
func (c *cables) damaged() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, s := range c.struck {
		if s {
			n++
		}
	}
	return n
}

func (c *cables) note(slot int, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fault{at: now(), slot: slot, what: what})
}

// strike damages a cable. Either its connections are reset, or its replies are held for a while, and in the moment in which
// they are let through it is stalled for half to three times the TTL, both ways or one: so there are replies that come
// late to somebody who then cannot ask again.
func (c *cables) strike(slot int, r *rand.Rand) {
	some := func(low, high float64) time.Duration {
		return time.Duration((low + r.Float64()*(high-low)) * float64(c.ttl))
	}
	slow, long, kind := some(0.2, 0.8), some(0.5, 3), r.IntN(8)
	c.strikes.Add(1)
	w := c.wires[slot]
	if kind == 0 {
		w.Cut()
		c.note(slot, "has its connections reset")
		return
	}
	c.mu.Lock()
	c.struck[slot] = true
	c.mu.Unlock()
	c.all.Go(func() {
		heal := w.Stall(proxy.Replies)
		c.note(slot, "gets no replies any more")
		pause(slow, c.over)
		way := [...]proxy.Direction{proxy.Both, proxy.Both, proxy.Requests, proxy.Requests, proxy.Replies, proxy.Replies, proxy.Both}[kind-1]
		if way != proxy.Replies {
			healed := heal
			heal = w.Stall(proxy.Requests)
			healed()
			if way == proxy.Both {
				pause(5*time.Millisecond, c.over) // for what was held to get through
				healRequests, healReplies := heal, w.Stall(proxy.Replies)
				heal = func() { healReplies(); healRequests() }
			}
			c.note(slot, map[proxy.Direction]string{proxy.Both: "gets what was held, and nothing goes either way", proxy.Requests: "gets its replies, and its requests are held"}[way])
		}
		pause(long, c.over)
		heal()
		c.note(slot, "has a link again; what was held arrives")
		c.mu.Lock()
		c.struck[slot] = false
		c.mu.Unlock()
	})
}

// mend makes all cables whole, and returns what was done to them.
func (c *cables) mend() []fault {
	close(c.over)
	c.all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults
}

// remove takes the cables away.
func (c *cables) remove() {
	for _, w := range c.wires {
		w.Close()
	}
}
