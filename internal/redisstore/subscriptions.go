package redisstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// Subscription is one channel of this process, heard from one master over a connection of its own.
type Subscription struct {
	Ear
	Node    string
	Channel string
}

// Subscriptions are those of one process: one to each master at which something of it stands. On a
// Cluster a master counts only its own subscribers, so one for all would not do.
type Subscriptions struct {
	*Holding // of what stands, but has not waited

	store *Store
	how   Listening

	mu     sync.Mutex
	open   map[string]*Subscription // by master
	next   map[string]string        // channels of the next ones, by master, that somebody was told already
	closed bool
}

// Listening is what Subscriptions are for.
type Listening struct {
	Channel  func(node string) string // names the channel of a new one
	Heard    func(payload string)
	Ended    func(*Subscription) // it ended by itself; messages may have been lost
	Sessions func() []Standing   // that are open
}

// Standing is a session, as far as Subscriptions are concerned.
type Standing interface {
	Standing() []string
	Hurry()
}

// AllOf returns the Sessions of a driver's.
func AllOf[S interface {
	comparable
	driver.Session
	Standing
}](open *sessions.Set[S]) func() []Standing {
	return func() (all []Standing) {
		for _, s := range open.All() {
			all = append(all, s)
		}
		return all
	}
}

// NewSubscriptions returns none.
func NewSubscriptions(store *Store, how Listening) *Subscriptions {
	l := &Subscriptions{store: store, how: how, open: map[string]*Subscription{}, next: map[string]string{}}
	l.Holding = NewHolding(l.cover)
	return l
}

// Channel returns the channel that this process listens to at the master that owns key, or will.
func (l *Subscriptions) Channel(key string) string {
	node := l.store.Conn.Node(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channel(node)
}

// channel is Channel of a master. mu is held.
func (l *Subscriptions) channel(node string) string {
	if s := l.open[node]; s != nil && !s.Deaf() {
		return s.Channel
	}
	if _, ok := l.next[node]; !ok {
		l.next[node] = l.how.Channel(node)
	}
	return l.next[node]
}

// Listen returns the subscription to the master that owns key, and makes it if it is missing. No ID
// enters a line before its channel is confirmed: a grant that nobody hears would skip the claim.
func (l *Subscriptions) Listen(ctx context.Context, key string) (*Subscription, error) {
	for left := Dials; ; {
		s, _, err := l.at(key)
		if err != nil {
			return nil, err
		}
		if err = s.Await(ctx); err == nil {
			return s, nil
		}
		if left--; left == 0 || !redisconn.Broken(err) || ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", l.store.Name, err)
		}
	}
}

// at returns the subscription to the master that owns key, whose connection may still be being made. One
// that has ended is replaced.
func (l *Subscriptions) at(key string) (s *Subscription, fresh bool, err error) {
	node := l.store.Conn.Node(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, l.store.errClosed()
	}
	if s := l.open[node]; s != nil && !s.Deaf() {
		return s, false, nil
	}
	s = &Subscription{Ear: NewEar(), Node: node, Channel: l.channel(node)}
	delete(l.next, node)
	l.open[node] = s
	go l.run(s, key)
	return s, true, nil
}

// run makes the connection of s, and returns when that has ended.
func (l *Subscriptions) run(s *Subscription, key string) {
	ctx, cancel := context.WithTimeout(l.store.Ctx, l.store.Timeout)
	_ = s.Subscribe(ctx, l.store.Conn, s.Node, key, s.Channel, l.how.Heard) // Await returns the error
	cancel()
	if !s.Listen(l.store.Ctx) {
		return
	}
	l.mu.Lock()
	if l.open[s.Node] == s {
		delete(l.open, s.Node)
	}
	l.mu.Unlock()
	l.how.Ended(s)
}

// cover subscribes at the masters of what stands, until each of them is heard. What stands there may have
// been broken before that, or lost with the server's memory, so its session is renewed.
func (l *Subscriptions) cover() {
	ctx, cancel := context.WithTimeout(l.store.Ctx, l.store.Timeout)
	defer cancel()
	for _, session := range l.how.Sessions() {
		made := map[string]string{} // the names for which one was made, by master
		for _, name := range session.Standing() {
			if s, fresh, err := l.at(name); err == nil && fresh {
				made[s.Node] = name
			}
		}
		for _, name := range made {
			if _, err := l.Listen(ctx, name); err == nil {
				session.Hurry()
			} else {
				l.Began() // it tries again
			}
		}
	}
}

// Close ends all subscriptions, or returns when ctx ends.
func (l *Subscriptions) Close(ctx context.Context) {
	l.Stop()
	l.mu.Lock()
	open := l.open
	l.open, l.closed = nil, true
	l.mu.Unlock()
	for _, s := range open {
		s.Close(ctx)
	}
}
