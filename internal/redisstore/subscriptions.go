package redisstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// Subscription is one channel of this process, at one master, over a connection of its own.
type Subscription struct {
	PubSub
	Node    string
	Channel string
}

// Subscriptions are those of one process: one at each master at which a claim of it holds or waits.
// On a Cluster a master counts only its own subscribers, so one for all would not do.
type Subscriptions struct {
	*Holding // of claims that hold, but have not waited

	store *Store
	on    Events

	mu     sync.Mutex
	open   map[string]*Subscription // by master
	next   map[string]string        // by master, the channel of the next one if claims name it already
	closed bool
}

// Events are what Subscriptions ask and call.
type Events struct {
	Channel  func(node string) string // returns the name of a new channel
	Message  func(payload string)
	Lost     func(*Subscription)  // it ended by itself; messages may have been lost
	Sessions func() []LiveSession // that are open
}

// LiveSession is a session, as far as Subscriptions are concerned.
type LiveSession interface {
	LiveNames() []string // of the claims that hold or wait
	Hurry()              // renews soon
}

// AllOf returns a function that returns the open sessions of a driver.
func AllOf[S interface {
	comparable
	driver.Session
	LiveSession
}](open *sessions.Set[S]) func() []LiveSession {
	return func() (all []LiveSession) {
		for _, s := range open.All() {
			all = append(all, s)
		}
		return all
	}
}

// NewSubscriptions returns Subscriptions without any.
func NewSubscriptions(store *Store, on Events) *Subscriptions {
	l := &Subscriptions{store: store, on: on, open: map[string]*Subscription{}, next: map[string]string{}}
	l.Holding = NewHolding(l.cover)
	return l
}

// Channel returns the channel of this process at the master that owns key, which it may not be
// subscribed to yet.
func (l *Subscriptions) Channel(key string) string {
	node := l.store.Conn.Node(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channel(node)
}

// channel is Channel of a master. The caller holds mu.
func (l *Subscriptions) channel(node string) string {
	if s := l.open[node]; s != nil && !s.Lost() {
		return s.Channel
	}
	if _, ok := l.next[node]; !ok {
		l.next[node] = l.on.Channel(node)
	}
	return l.next[node]
}

// Listen returns the subscription at the master that owns key, and makes it if it is missing. No ID
// enters a line before its channel is confirmed: the message of a grant would reach nobody, and the
// script would skip the claim.
func (l *Subscriptions) Listen(ctx context.Context, key string) (*Subscription, error) {
	for left := MaxDials; ; {
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

// at returns the subscription at the master that owns key, whose connection may still be being
// made. One that is lost is replaced.
func (l *Subscriptions) at(key string) (s *Subscription, fresh bool, err error) {
	node := l.store.Conn.Node(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, l.store.errClosed()
	}
	if s := l.open[node]; s != nil && !s.Lost() {
		return s, false, nil
	}
	s = &Subscription{PubSub: NewPubSub(), Node: node, Channel: l.channel(node)}
	delete(l.next, node)
	l.open[node] = s
	go l.run(s, key)
	return s, true, nil
}

// run makes the connection of s, and returns when that has ended.
func (l *Subscriptions) run(s *Subscription, key string) {
	ctx, cancel := context.WithTimeout(l.store.Ctx, l.store.Timeout)
	_ = s.Subscribe(ctx, l.store.Conn, s.Node, key, s.Channel, l.on.Message) // Await returns the error
	cancel()
	if !s.AwaitLost(l.store.Ctx) {
		return
	}
	l.mu.Lock()
	if l.open[s.Node] == s {
		delete(l.open, s.Node)
	}
	l.mu.Unlock()
	l.on.Lost(s)
}

// cover subscribes at the masters of all live claims that have no subscription. Such a claim may
// have been broken before that, or lost with the server's memory, so its session is renewed.
func (l *Subscriptions) cover() {
	ctx, cancel := context.WithTimeout(l.store.Ctx, l.store.Timeout)
	defer cancel()
	for _, session := range l.on.Sessions() {
		made := map[string]string{} // the names for which one was made, by master
		for _, name := range session.LiveNames() {
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
