package redlock

import (
	"time"

	"github.com/interlock-go/interlock/redisconn"
)

// orphan is a claim that has been released and may still stand on one master: the master did not
// answer to the release, or a request for the claim had no answer and may arrive there yet, from a
// network that held it back or from the buffer of a server that was stopped, and take the master
// for nobody. So it is released there again: until that is answered, and for a while after a
// request that may be under way.
type orphan struct {
	keys  keys
	id    string
	until time.Time
	out   bool // a release was answered, or is refused for good
}

// orphansMax bounds what is remembered of a master that is away for long. What is forgotten goes by
// its TTL.
const orphansMax = 10000

func (n *node) addOrphan(k keys, id string, stay time.Duration, out bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.orphans) == orphansMax {
		n.orphans = n.orphans[1:]
	}
	n.orphans = append(n.orphans, orphan{k, id, time.Now().Add(stay), out})
	if !n.releases && !n.closed {
		n.releases = true
		n.d.serving.Add(1)
		go n.releaseOrphans()
	}
}

// releaseOrphans releases orphans again and again, until none is left.
func (n *node) releaseOrphans() {
	defer n.d.serving.Done()
	for rest := 50 * time.Millisecond; ; rest = min(2*rest, time.Second) {
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-n.d.ctx.Done():
			timer.Stop()
			return
		}
		n.mu.Lock()
		some := append([]orphan(nil), n.orphans...)
		n.mu.Unlock()
		answered := make(chan int, len(some))
		since := time.Now()
		for i, g := range some {
			n.give(order{
				call:  redisconn.Call{Script: lineScript, Keys: g.keys.all(), Args: []string{g.id, "0", "3600000", proposalOf(since)}},
				since: since, until: since.Add(n.d.options.NodeTimeout),
				done: func(_ *node, _ *order, _ any, err error) {
					if err != nil && !final(err) {
						i = -1
					}
					answered <- i
				},
			})
		}
		out := map[string]bool{}
		for range some {
			if i := <-answered; i >= 0 {
				out[some[i].id] = true
			}
		}
		n.mu.Lock()
		left, now := n.orphans[:0], time.Now()
		for _, g := range n.orphans {
			g.out = g.out || out[g.id]
			if !g.out || now.Before(g.until) {
				left = append(left, g)
			}
		}
		n.orphans = left
		n.releases = len(left) > 0
		done := !n.releases
		n.mu.Unlock()
		if done {
			return
		}
	}
}
