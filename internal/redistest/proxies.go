package redistest

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// Proxies carry the connections of one driver to its servers, one for each. The driver is given the
// addresses of the proxies, or its client dials through them, also to servers that it learns of
// later. What a method does to all proxies it also does to those that are made later. Methods may
// be called concurrently.
type Proxies struct {
	Idle []string // servers whose requests do not count, such as Sentinels; set before the first connection
	Own  []string // commands that do not count, besides those of [Overhead]; set before the first connection

	t drivertest.T

	mu     sync.Mutex
	all    []*proxy // in the order in which they were made
	muted  bool
	killed bool
	stalls []*stall
}

// proxy is the wire to one server.
type proxy struct {
	*wire.Wire
	server string
	calls  atomic.Int64
}

// stall holds every proxy until it is healed.
type stall struct {
	way   wire.Direction
	heals []func()
}

// NewProxies returns Proxies for a test, at whose end they are closed.
func NewProxies(t drivertest.T) *Proxies { return &Proxies{t: t} }

// To returns the wire to the server at addr, which is made if it is missing.
func (p *Proxies) To(addr string) *wire.Wire {
	p.t.Helper()
	l, err := p.proxy(context.Background(), addr)
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	return l.Wire
}

// Dial connects a client with the server at addr.
func (p *Proxies) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l, err := p.proxy(ctx, addr)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, l.Addr())
}

func (p *Proxies) proxy(ctx context.Context, server string) (*proxy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.all, func(l *proxy) bool { return l.server == server }); i >= 0 {
		return p.all[i], nil
	}
	w, err := wire.Listen(ctx, server)
	if err != nil {
		return nil, err
	}
	p.t.Cleanup(w.Close)
	l := &proxy{Wire: w, server: server}
	p.all = append(p.all, l)
	if !slices.Contains(p.Idle, server) {
		l.Filter(wire.Requests, func(frame []byte) bool {
			if !Overhead(frame) && !says(frame, p.Own) {
				l.calls.Add(1)
			}
			return true
		})
	}
	if p.muted {
		l.Filter(wire.Replies, noMessage)
	}
	if p.killed {
		l.Refuse()
	}
	for _, s := range p.stalls {
		s.heals = append(s.heals, l.Stall(s.way))
	}
	return l, nil
}

// own are the commands by which a client greets a server, sees whether it lives, and learns of a
// Cluster's other servers.
var own = []string{"HELLO", "CLIENT", "PING", "ping", "hello", "client", "CLUSTER"}

// Overhead reports whether a request is the client's own, not its user's.
func Overhead(request []byte) bool { return says(request, own) }

func says(request []byte, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return bytes.Contains(request[:min(len(request), 24)], []byte(word))
	})
}

// Calls returns how many requests each server was sent, in the order in which the proxies were
// made.
func (p *Proxies) Calls() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var calls []int
	for _, l := range p.all {
		calls = append(calls, int(l.calls.Load()))
	}
	return calls
}

// Kill cuts all connections for good.
func (p *Proxies) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	for _, l := range p.all {
		l.Refuse()
		l.Cut()
	}
}

// Stall holds what goes one way or both until heal is called.
func (p *Proxies) Stall(way wire.Direction) (heal func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held := &stall{way: way}
	p.stalls = append(p.stalls, held)
	for _, l := range p.all {
		held.heals = append(held.heals, l.Stall(way))
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stalls = slices.DeleteFunc(p.stalls, func(s *stall) bool { return s == held })
		for _, heal := range held.heals {
			heal()
		}
	}
}

// Straggle lets each server have n requests and holds the one after them, with its connection,
// until deliver is called.
func (p *Proxies) Straggle(n int) (deliver func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []func() bool
	for _, l := range p.all {
		last := l.calls.Load() + int64(n)
		all = append(all, l.Hold(func([]byte) bool { return l.calls.Load() > last }))
	}
	return func() (met bool) {
		for _, deliver := range all {
			met = deliver() || met
		}
		return met
	}
}

// Deafen loses the messages of subscriptions until heal is called.
func (p *Proxies) Deafen() (heal func()) {
	p.deafen(true, noMessage)
	return func() { p.deafen(false, nil) }
}

func (p *Proxies) deafen(muted bool, passes func(reply []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = muted
	for _, l := range p.all {
		l.Filter(wire.Replies, passes)
	}
}

func noMessage(reply []byte) bool {
	return !bytes.Contains(reply[:min(len(reply), 20)], []byte("message"))
}
