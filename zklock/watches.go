package zklock

import (
	"slices"

	"github.com/interlock-go/interlock/internal/zk"
)

// watches is which claims of a session are told of changes, by the nodes. The session's mutex
// guards it.
//
// A node is entered before the servers are asked to watch it, since the change may be told before
// the answer is read. A claim is watched if the servers have been asked about all its nodes and
// have told no change since.
type watches struct {
	own   map[string]*claim   // nodes of claims
	ahead map[string][]*claim // nodes that claims wait for
}

// watchOwn returns the requests that read the claim's nodes and watch them.
func (w *watches) watchOwn(c *claim) (gets []*zk.Call) {
	c.watched = true
	for _, node := range c.nodes {
		w.own[node] = c
		gets = append(gets, zk.Get(node, true))
	}
	return gets
}

// unwatchOwn makes changes of the claim's nodes mean nothing.
func (w *watches) unwatchOwn(c *claim) {
	for _, node := range c.nodes {
		if w.own[node] == c {
			delete(w.own, node)
		}
	}
	c.watched = false
}

// watch has the claim wait for changes of nodes, and of no others.
func (w *watches) watch(c *claim, nodes ...string) {
	w.unwatch(c)
	c.ahead = nodes
	for _, node := range nodes {
		w.ahead[node] = append(w.ahead[node], c)
	}
}

// unwatch has the claim wait for no change.
func (w *watches) unwatch(c *claim) {
	for _, node := range c.ahead {
		behind := slices.DeleteFunc(w.ahead[node], func(other *claim) bool { return other == c })
		if w.ahead[node] = behind; len(behind) == 0 {
			delete(w.ahead, node)
		}
	}
	c.ahead = nil
}

// changed returns the claims that waited for a change of a node. They wait for none now.
func (w *watches) changed(node string) []*claim {
	behind := w.ahead[node]
	delete(w.ahead, node)
	for _, c := range behind {
		w.unwatch(c)
	}
	return behind
}
