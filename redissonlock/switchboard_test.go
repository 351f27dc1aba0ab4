//go:build linux || darwin

package redissonlock_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/wire"
)

// switchboard carries the connections of one driver to several servers, over a wire to each: the driver's client dials
// through it, also to servers that it has only heard of.
type switchboard struct {
	t    drivertest.T
	idle []string // servers whose requests do not count, such as Sentinels

	calls atomic.Int64

	mu     sync.Mutex
	wires  map[string]*wire.Wire
	deaf   bool
	dead   bool
	stalls []*stall
}

// stall holds every wire until it is healed.
type stall struct {
	way    wire.Direction
	healed bool
	heals  []func()
}

func newSwitchboard(t drivertest.T, idle ...string) *switchboard {
	return &switchboard{t: t, idle: idle, wires: map[string]*wire.Wire{}}
}

// dial is the client's.
func (s *switchboard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, err := s.wireTo(addr)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

func (s *switchboard) wireTo(addr string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.wires[addr]; w != nil {
		return w.Addr(), nil
	}
	w, err := wire.Listen(context.Background(), addr)
	if err != nil {
		return "", err
	}
	s.t.Cleanup(w.Close)
	s.wires[addr] = w
	if !slices.Contains(s.idle, addr) {
		w.Filter(wire.Requests, func(frame []byte) bool {
			if !overhead(frame) && !bytes.Contains(frame[:min(len(frame), 24)], []byte("CLUSTER")) {
				s.calls.Add(1)
			}
			return true
		})
	}
	w.Filter(wire.Replies, s.passes)
	if s.dead {
		w.Refuse()
	}
	for _, st := range s.stalls {
		if !st.healed {
			st.heals = append(st.heals, w.Stall(st.way))
		}
	}
	return w.Addr(), nil
}

// passes loses the messages of subscriptions while the driver is deaf.
func (s *switchboard) passes(frame []byte) bool {
	if !bytes.Contains(frame[:min(len(frame), 20)], []byte("message")) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.deaf
}

func (s *switchboard) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	for _, w := range s.wires {
		w.Refuse()
		w.Cut()
	}
}

func (s *switchboard) stall(way wire.Direction) (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &stall{way: way}
	for _, w := range s.wires {
		st.heals = append(st.heals, w.Stall(way))
	}
	s.stalls = append(s.stalls, st)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		st.healed = true
		for _, heal := range st.heals {
			heal()
		}
	}
}

func (s *switchboard) deafen() (heal func()) {
	s.setDeaf(true)
	return func() { s.setDeaf(false) }
}

func (s *switchboard) setDeaf(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = deaf
}
