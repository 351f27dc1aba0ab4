package redisstore

import (
	"strconv"
	"strings"
	"sync"
)

// Message is what a script publishes to a process: a letter that says what happened, the ID of the
// claim that it happened to, and numbers. The ID is a secret of the store and its owner.
type Message struct {
	Letter, ID string
	Numbers    [2]int64
}

// Receivers are the receivers of the messages for claims. The zero value is ready.
type Receivers[R any] struct {
	mu sync.Mutex
	of map[string]R // by ID
}

// Add registers the receiver of a claim's messages, before its ID is sent.
func (r *Receivers[R]) Add(id string, receiver R) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]R{}
	}
	r.of[id] = receiver
}

// Remove unregisters the receiver of a claim's messages.
func (r *Receivers[R]) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, id)
}

// Find parses a message and returns its receiver. It returns false if that is not registered.
func (r *Receivers[R]) Find(payload string) (m Message, receiver R, ok bool) {
	f := strings.Fields(payload)
	if len(f) < 2 {
		return m, receiver, false
	}
	m.Letter, m.ID = f[0], f[1]
	for i := range min(len(f)-2, len(m.Numbers)) {
		m.Numbers[i], _ = strconv.ParseInt(f[i+2], 10, 64)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	receiver, ok = r.of[m.ID]
	return m, receiver, ok
}
