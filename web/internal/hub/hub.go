// Package hub asks a store once for all who look at it through a handler of package web.
//
// A [Hub] asks only while somebody looks: for the list of names at most every second or ten times
// as long as that took, and for a name that somebody follows whenever it changes. No viewer holds
// up another, or the hub: each has a [Mailbox] of one state, of which the newest wins.
//
// Arrows go down, from a file to those below it:
//
//	hub.go                          one store, as a handler sees it
//	list.go  names.go  doctor.go    what is read for many: the list, a name, an examination
//	history.go  store.go            what was seen; one request to the driver
//	event.go  health.go             what happened to a claim; how the driver answered
//	state.go  memo.go  life.go      values, and when the work in the background ends
package hub

import (
	"log/slog"

	"github.com/interlock-go/interlock/driver"
)

// Config is what a hub is made of.
type Config struct {
	Name    string // of the store, as people call it
	URL     string // as it is shown
	Driver  driver.Driver
	History int // how many events are kept
	Life    *Life
	Log     *slog.Logger
}

// Hub asks one store, for all who look at it. Its fields do not change.
type Hub struct {
	Name, URL string

	Store   *Store
	List    *List
	Names   *Names
	History *History
	Doctor  *Doctor
}

// New returns a hub that has asked for nothing yet.
func New(c Config) *Hub {
	store := newStore(c.Name, c.Driver, c.Life, c.Log)
	history := newHistory(c.History)
	return &Hub{
		Name: c.Name, URL: c.URL, Store: store, History: history,
		List:   newList(store, history),
		Names:  newNames(store, history),
		Doctor: &Doctor{store: store},
	}
}
