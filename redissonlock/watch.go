package redissonlock

import (
	"context"

	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// watch is the subscription of a process that holds something or waits, to one master. Its end tells that the master may have forgotten who
// holds; a message, that an operator has broken something here. Both say no more than that: a renewal asks what became of it.
type watch struct {
	redisstore.Ear
	node string
}

// holders begins the channels on which processes are told of breaks: the client's id follows. Redisson has no such channel.
const holders = "redisson_lock__channel:interlock:"

// watchHolders subscribes at the masters of what is held or waited for, until it hears each of them. What stands there may have been broken before
// that, or lost with the server's memory, so a renewal looks.
func (d *Driver) watchHolders() {
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	defer cancel()
	for _, s := range d.sessions.All() {
		d.mu.Lock()
		if d.sessions.Closed() {
			d.mu.Unlock()
			return
		}
		var fresh []*watch
		for _, c := range s.claims {
			node := d.conn.Node(c.Name)
			if w := d.watches[node]; c.stands() && (w == nil || w.Deaf()) {
				w = &watch{Ear: redisstore.NewEar(), node: node}
				d.watches[node] = w
				fresh = append(fresh, w)
				go d.watch(w, c.Name)
			}
		}
		d.mu.Unlock()
		for _, w := range fresh {
			if w.Await(ctx) == nil {
				s.Hurry()
			} else {
				d.holding.Began() // it tries again
			}
		}
	}
}

// watch subscribes, and when the subscription ends has every session with a claim at its master ask at once, and once more
// when there is another subscription.
func (d *Driver) watch(w *watch, name string) {
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	_ = w.Subscribe(ctx, d.conn, w.node, name, holders+d.client, func(string) { d.hurry(func(*claim) bool { return true }) })
	cancel() // who awaits the watch hears of an error
	if !w.Listen(d.ctx) {
		return
	}
	d.mu.Lock()
	if d.watches[w.node] == w {
		delete(d.watches, w.node)
	}
	d.mu.Unlock()
	if d.hurry(func(c *claim) bool { return d.conn.Node(c.Name) == w.node }) {
		d.holding.Began()
	}
}

// hurry has every session renewed that has such a claim, and reports whether any has.
func (d *Driver) hurry(such func(*claim) bool) (some bool) {
	for _, s := range d.sessions.All() {
		d.mu.Lock()
		has := false
		for _, c := range s.claims {
			has = has || c.stands() && such(c)
		}
		d.mu.Unlock()
		if has {
			s.Hurry()
		}
		some = some || has
	}
	return some
}

// tell has the process of a claim of ours look, whose field it is. Where nobody hears it, the next renewal looks.
func (d *Driver) tell(ctx context.Context, field string) {
	if client := clientOf(field); client != "" {
		words := []string{"PUBLISH", holders + client, "broken"} // on a Cluster every master passes it on
		_, _ = d.conn.Do(sessions.Within(ctx, d.options.Timeout), redisconn.Command{Words: words})
	}
}
