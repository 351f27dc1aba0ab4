package redisstore

import (
	"strconv"
	"strings"
	"sync"
)

// Message is what a script tells a process: a letter that says what it is, the ID of the claim that it is for, and numbers.
// The ID is a secret of the store and its owner.
type Message struct {
	Letter, ID string
	Numbers    [2]int64
}

// Audience knows whom the messages for claims are for. The zero value is ready.
type Audience[S any] struct {
	mu  sync.Mutex
	who map[string]S
}

// Add has the messages for a claim go to who, from before its ID is sent until Remove.
func (a *Audience[S]) Add(id string, who S) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.who == nil {
		a.who = map[string]S{}
	}
	a.who[id] = who
}

// Remove has nobody hear the messages for a claim.
func (a *Audience[S]) Remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.who, id)
}

// Hear takes a message apart and finds whom it is for. One with an ID that nobody here has is nobody's.
func (a *Audience[S]) Hear(payload string) (m Message, who S, ok bool) {
	f := strings.Fields(payload)
	if len(f) < 2 {
		return m, who, false
	}
	m.Letter, m.ID = f[0], f[1]
	for i := range min(len(f)-2, len(m.Numbers)) {
		m.Numbers[i], _ = strconv.ParseInt(f[i+2], 10, 64)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	who, ok = a.who[m.ID]
	return m, who, ok
}
