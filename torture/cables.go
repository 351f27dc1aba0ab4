//go:build linux || darwin

package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	proxy "github.com/interlock-go/interlock/driver/drivertest/wire"
)

// cables are the links between the workers of a round and the servers: for every slot a proxy for each server, over which go
// all bytes of all lives of that slot. A link that fails here fails as networks do: what was sent before a stall arrives
// after it, also when its sender has given up, hung up or died.
type cables struct {
	targets []string
	wires   [][]*proxy.Wire // by slot and server
	ttl     time.Duration
	resets  bool          // is all that is wrong with them
	over    chan struct{} // closed when all must be whole again
	taken   []int         // sockets on ports on which nobody is to listen

	mu      sync.Mutex
	struck  []bool // by slot
	faults  []fault
	strikes atomic.Int64
	all     sync.WaitGroup
}

// lay opens a cable to each of the servers at targets for each of n slots. Each packet takes up to twice delay, half of it
// at random.
func lay(ctx context.Context, targets []string, n int, delay, ttl time.Duration) (*cables, error) {
	c := &cables{targets: targets, ttl: ttl, over: make(chan struct{}), struck: make([]bool, n), wires: make([][]*proxy.Wire, n)}
	for slot := range n {
		for _, target := range targets {
			w, err := proxy.Listen(ctx, target)
			if err != nil {
				c.remove()
				return nil, err
			}
			w.Delay(delay, delay)
			c.wires[slot] = append(c.wires[slot], w)
		}
	}
	return c, nil
}

// part has nobody but the last slot reach the first n servers. The ports stay taken: on one that is free another server may
// come to listen, and be counted as one of these.
func (c *cables) part(n int) error {
	for _, wires := range c.wires[:len(c.wires)-1] {
		for _, w := range wires[:n] {
			_, text, _ := strings.Cut(w.Addr(), ":")
			port, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			c.taken = append(c.taken, fd)
			w.Refuse()
			err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
			if err != nil {
				return fmt.Errorf("torture: keep port %d from being listened on: %w", port, err)
			}
		}
	}
	return nil
}

// url is the store's URL as the worker of a slot must use it.
func (c *cables) url(store string, slot int) string {
	for i, target := range c.targets {
		store = strings.Replace(store, target, c.wires[slot][i].Addr(), 1)
	}
	return store
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

// strike damages the cables of a slot: all of them, or where there are several servers those to a majority or, unless the
// worker wants to be cut off, to a minority. Either their connections are reset, or their replies are held for a while, and
// in the moment in which they are let through they are stalled for half to three times the TTL, both ways or one: so there
// are replies that come late to somebody who then cannot ask again.
func (c *cables) strike(slot int, r *rand.Rand, off bool) {
	some := func(low, high float64) time.Duration {
		return time.Duration((low + r.Float64()*(high-low)) * float64(c.ttl))
	}
	slow, long, kind := some(0.2, 0.8), some(0.5, 3), r.IntN(8)
	hit, where := c.draw(slot, r, off)
	c.strikes.Add(1)
	if c.resets {
		c.reset(slot, hit, where)
		return
	}
	if kind == 0 {
		for _, w := range hit {
			w.Cut()
		}
		c.note(slot, "has its connections reset"+where)
		return
	}
	c.mu.Lock()
	c.struck[slot] = true
	c.mu.Unlock()
	c.all.Go(func() {
		heal := stall(hit, proxy.Replies)
		c.note(slot, "gets no replies any more"+where)
		pause(slow, c.over)
		way := [...]proxy.Direction{proxy.Both, proxy.Both, proxy.Requests, proxy.Requests, proxy.Replies, proxy.Replies, proxy.Both}[kind-1]
		if way != proxy.Replies {
			healed := heal
			heal = stall(hit, proxy.Requests)
			healed()
			if way == proxy.Both {
				pause(5*time.Millisecond, c.over) // for what was held to get through
				healRequests, healReplies := heal, stall(hit, proxy.Replies)
				heal = func() { healReplies(); healRequests() }
			}
			c.note(slot, map[proxy.Direction]string{proxy.Both: "gets what was held, and nothing goes either way", proxy.Requests: "gets its replies, and its requests are held"}[way]+where)
		}
		pause(long, c.over)
		heal()
		c.note(slot, "has a link again; what was held arrives"+where)
		c.mu.Lock()
		c.struck[slot] = false
		c.mu.Unlock()
	})
}

// reset has the connections of cables end, soon after the last reply came through.
func (c *cables) reset(slot int, hit []*proxy.Wire, where string) {
	c.mu.Lock()
	c.struck[slot] = true
	c.mu.Unlock()
	c.all.Go(func() {
		heal := stall(hit, proxy.Replies)
		pause(5*time.Millisecond, c.over) // for what was asked to be done
		for _, w := range hit {
			w.Cut()
		}
		heal()
		c.note(slot, "has its connections reset, and loses the replies that were under way"+where)
		c.mu.Lock()
		c.struck[slot] = false
		c.mu.Unlock()
	})
}

// draw returns which cables of a slot are damaged, and says so where they are not all.
func (c *cables) draw(slot int, r *rand.Rand, off bool) (hit []*proxy.Wire, where string) {
	n := len(c.targets)
	if n == 1 || r.IntN(2) == 0 {
		return c.wires[slot], ""
	}
	k := 1 + r.IntN(n/2+1)
	if off {
		k = n/2 + 1
	}
	for _, i := range slices.Sorted(slices.Values(r.Perm(n)[:k])) {
		hit = append(hit, c.wires[slot][i])
		where += ", " + c.targets[i]
	}
	return hit, " (" + strings.TrimPrefix(where, ", ") + ")"
}

// stall holds back what goes one way over several cables.
func stall(wires []*proxy.Wire, d proxy.Direction) (heal func()) {
	var heals []func()
	for _, w := range wires {
		heals = append(heals, w.Stall(d))
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

// mend makes all cables whole, and returns what was done to them.
func (c *cables) mend() []fault {
	close(c.over)
	c.all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults
}

// remove takes the cables away, if they are there.
func (c *cables) remove() {
	defer func() { c.taken, c.wires = nil, nil }()
	for _, fd := range c.taken {
		_ = unix.Close(fd)
	}
	for _, wires := range c.wires {
		for _, w := range wires {
			w.Close()
		}
	}
}
