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

// Board carries the connections of one driver to its servers, over a wire to each. The driver is
// given the addresses of the wires, or its client dials through the board, also to servers that it
// has only heard of. What befalls the driver befalls all its wires, also those that are laid later.
// Its methods may be called concurrently.
type Board struct {
	Idle []string // servers whose requests do not count, such as Sentinels; set before the first connection
	Own  []string // commands that do not count, besides those of [Overhead]; set before the first connection

	t drivertest.T

	mu     sync.Mutex
	lines  []*line // in the order in which they were laid
	deaf   bool
	dead   bool
	stalls []*stall
}

// line is the wire to one server.
type line struct {
	*wire.Wire
	server string
	calls  atomic.Int64
}

// stall holds every wire until it is healed.
type stall struct {
	way   wire.Direction
	heals []func()
}

// NewBoard makes a board for a test, at whose end it is closed.
func NewBoard(t drivertest.T) *Board { return &Board{t: t} }

// To returns the wire to the server at addr, and lays it when there is none.
func (b *Board) To(addr string) *wire.Wire {
	b.t.Helper()
	l, err := b.line(context.Background(), addr)
	if err != nil {
		b.t.Fatalf("%v", err)
	}
	return l.Wire
}

// Dial connects a client with the server at addr.
func (b *Board) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l, err := b.line(ctx, addr)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, l.Addr())
}

func (b *Board) line(ctx context.Context, server string) (*line, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.lines, func(l *line) bool { return l.server == server }); i >= 0 {
		return b.lines[i], nil
	}
	w, err := wire.Listen(ctx, server)
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(w.Close)
	l := &line{Wire: w, server: server}
	b.lines = append(b.lines, l)
	if !slices.Contains(b.Idle, server) {
		l.Filter(wire.Requests, func(frame []byte) bool {
			if !Overhead(frame) && !says(frame, b.Own) {
				l.calls.Add(1)
			}
			return true
		})
	}
	if b.deaf {
		l.Filter(wire.Replies, noMessage)
	}
	if b.dead {
		l.Refuse()
	}
	for _, s := range b.stalls {
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

// Calls returns how many requests each server was sent, in the order in which the wires were laid.
func (b *Board) Calls() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var calls []int
	for _, l := range b.lines {
		calls = append(calls, int(l.calls.Load()))
	}
	return calls
}

// Kill cuts the wires for good.
func (b *Board) Kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dead = true
	for _, l := range b.lines {
		l.Refuse()
		l.Cut()
	}
}

// Stall holds what goes one way or both until heal is called.
func (b *Board) Stall(way wire.Direction) (heal func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := &stall{way: way}
	b.stalls = append(b.stalls, held)
	for _, l := range b.lines {
		held.heals = append(held.heals, l.Stall(way))
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stalls = slices.DeleteFunc(b.stalls, func(s *stall) bool { return s == held })
		for _, heal := range held.heals {
			heal()
		}
	}
}

// Straggle lets each server have n requests and holds the one after them, with its connection,
// until deliver is called.
func (b *Board) Straggle(n int) (deliver func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []func() bool
	for _, l := range b.lines {
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
func (b *Board) Deafen() (heal func()) {
	b.deafen(true, noMessage)
	return func() { b.deafen(false, nil) }
}

func (b *Board) deafen(deaf bool, passes func(reply []byte) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf = deaf
	for _, l := range b.lines {
		l.Filter(wire.Replies, passes)
	}
}

func noMessage(reply []byte) bool {
	return !bytes.Contains(reply[:min(len(reply), 20)], []byte("message"))
}
