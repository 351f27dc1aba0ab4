//go:build linux || darwin

// Package proxies has the links between the workers of a round and the servers, and damages them.
package proxies

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

	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
)

// Proxies are the links between the workers of a round and the servers: for every slot a proxy for
// each server, which carries all bytes of all lives of that slot. A link that fails here fails as
// networks do: what was sent before a stall arrives after it, also when its sender has given up,
// hung up or died.
type Proxies struct {
	targets []string
	wires   [][]*wire.Wire // by slot and server
	ttl     time.Duration
	Resets  bool          // connections are reset, and nothing else is wrong with them
	over    chan struct{} // closed when all must be whole again
	taken   []int         // sockets on ports on which nobody is to listen

	mu      sync.Mutex
	damaged []bool          // by slot; guarded by mu
	faults  []history.Fault // guarded by mu
	Count   atomic.Int64
	all     sync.WaitGroup
}

// New starts a proxy to each of the servers at targets for each of n slots. Each packet takes
// up to twice delay, half of it at random.
func New(ctx context.Context, targets []string, n int, delay, ttl time.Duration) (*Proxies, error) {
	p := &Proxies{targets: targets, ttl: ttl, over: make(chan struct{}), damaged: make([]bool, n), wires: make([][]*wire.Wire, n)}
	for slot := range n {
		for _, target := range targets {
			w, err := wire.Listen(ctx, target)
			if err != nil {
				p.Close()
				return nil, err
			}
			w.Delay(delay, delay)
			p.wires[slot] = append(p.wires[slot], w)
		}
	}
	return p, nil
}

// Isolate leaves the first n servers within reach of nobody but the last slot. The ports stay
// taken: on one that is free another server may come to listen, and be counted as one of these.
func (p *Proxies) Isolate(n int) error {
	for _, wires := range p.wires[:len(p.wires)-1] {
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
			p.taken = append(p.taken, fd)
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

// URL is the store's URL as the worker of a slot must use it.
func (p *Proxies) URL(store string, slot int) string {
	for i, target := range p.targets {
		store = strings.Replace(store, target, p.wires[slot][i].Addr(), 1)
	}
	return store
}

// Whole reports whether nothing is wrong with a slot's links.
func (p *Proxies) Whole(slot int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.damaged[slot]
}

// Broken returns how many slots have links that are not whole.
func (p *Proxies) Broken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, d := range p.damaged {
		if d {
			n++
		}
	}
	return n
}

// mark says whether the links of a slot are damaged.
func (p *Proxies) mark(slot int, damaged bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damaged[slot] = damaged
}

func (p *Proxies) note(slot int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, history.Fault{At: monotonic.Now(), Slot: slot, What: what})
}

// Damage damages the links of a slot: all of them, or where there are several servers those to a
// majority or, unless the worker wants to be cut off, to a minority. Either their connections are
// reset, or their replies are held for a while, and in the moment in which they are let through
// they are stalled for half to three times the TTL, both ways or one: so there are replies that
// come late to a client that then cannot ask again.
func (p *Proxies) Damage(slot int, r *rand.Rand, off bool) {
	some := func(low, high float64) time.Duration {
		return time.Duration((low + r.Float64()*(high-low)) * float64(p.ttl))
	}
	slow, long, kind := some(0.2, 0.8), some(0.5, 3), r.IntN(8)
	hit, where := p.draw(slot, r, off)
	p.Count.Add(1)
	if p.Resets {
		p.reset(slot, hit, where)
		return
	}
	if kind == 0 {
		for _, w := range hit {
			w.Cut()
		}
		p.note(slot, "has its connections reset"+where)
		return
	}
	p.mark(slot, true)
	p.all.Go(func() {
		heal := stall(hit, wire.Replies)
		p.note(slot, "gets no replies any more"+where)
		monotonic.Pause(slow, p.over)
		way := [...]wire.Direction{wire.Both, wire.Both, wire.Requests, wire.Requests, wire.Replies, wire.Replies, wire.Both}[kind-1]
		if way != wire.Replies {
			healed := heal
			heal = stall(hit, wire.Requests)
			healed()
			if way == wire.Both {
				monotonic.Pause(5*time.Millisecond, p.over) // for what was held to get through
				healRequests, healReplies := heal, stall(hit, wire.Replies)
				heal = func() { healReplies(); healRequests() }
			}
			p.note(slot, map[wire.Direction]string{wire.Both: "gets what was held, and nothing goes either way", wire.Requests: "gets its replies, and its requests are held"}[way]+where)
		}
		monotonic.Pause(long, p.over)
		heal()
		p.note(slot, "has a link again; what was held arrives"+where)
		p.mark(slot, false)
	})
}

// reset ends the connections of links, soon after the last reply came through.
func (p *Proxies) reset(slot int, hit []*wire.Wire, where string) {
	p.mark(slot, true)
	p.all.Go(func() {
		heal := stall(hit, wire.Replies)
		monotonic.Pause(5*time.Millisecond, p.over) // for what was asked to be done
		for _, w := range hit {
			w.Cut()
		}
		heal()
		p.note(slot, "has its connections reset, and loses the replies that were under way"+where)
		p.mark(slot, false)
	})
}

// draw returns which links of a slot are to be damaged, and says so where they are not all.
func (p *Proxies) draw(slot int, r *rand.Rand, off bool) (hit []*wire.Wire, where string) {
	n := len(p.targets)
	if n == 1 || r.IntN(2) == 0 {
		return p.wires[slot], ""
	}
	k := 1 + r.IntN(n/2+1)
	if off {
		k = n/2 + 1
	}
	for _, i := range slices.Sorted(slices.Values(r.Perm(n)[:k])) {
		hit = append(hit, p.wires[slot][i])
		where += ", " + p.targets[i]
	}
	return hit, " (" + strings.TrimPrefix(where, ", ") + ")"
}

// stall holds back what goes one way over several links.
func stall(wires []*wire.Wire, d wire.Direction) (heal func()) {
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

// Heal makes all links whole, and returns what was done to them.
func (p *Proxies) Heal() []history.Fault {
	close(p.over)
	p.all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults
}

// Close stops the proxies, if there are any. It may be called again.
func (p *Proxies) Close() {
	if p == nil {
		return
	}
	defer func() { p.taken, p.wires = nil, nil }()
	for _, fd := range p.taken {
		_ = unix.Close(fd)
	}
	for _, wires := range p.wires {
		for _, w := range wires {
			w.Close()
		}
	}
}
