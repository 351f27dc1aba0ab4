package redislock

import (
	"time"

	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// ghost is a claim that was released although a request for it had no answer. That request may still reach the server,
// from a network that held it back or from the buffer of a server that was stopped, and take the lock for nobody. So the
// claim is released again for a while: soon at first, since most of what was held back arrives together, and never so
// seldom that it stands for a second in a server that can be reached again.
type ghost struct {
	keys  keys
	id    string
	until time.Time
}

func (d *Driver) haunted(k keys, id string, stay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ghosts = append(d.ghosts, ghost{k, id, time.Now().Add(stay)})
	if len(d.ghosts) == 1 {
		go d.exorcise()
	}
}

// exorcise releases ghosts until none is left.
func (d *Driver) exorcise() {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 400*time.Millisecond) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-d.ctx.Done():
			timer.Stop()
			return
		}
		d.mu.Lock()
		calls := make([]redisconn.Call, len(d.ghosts))
		for i, g := range d.ghosts {
			calls[i] = d.leaving(g.keys, g.id)
		}
		d.mu.Unlock()
		_, _ = redisstore.Together(d.ctx, d.run, d.options.Timeout, calls)
		d.mu.Lock()
		left, now := d.ghosts[:0], time.Now()
		for _, g := range d.ghosts {
			if now.Before(g.until) {
				left = append(left, g)
			}
		}
		d.ghosts = left
		done := len(left) == 0
		d.mu.Unlock()
		if done {
			return
		}
	}
}

// leaving is a run of the long script in which a claim leaves. No ID comes back.
func (d *Driver) leaving(k keys, id string) redisconn.Call {
	return redisconn.Call{
		Script: lineScript, Keys: k.all(), Args: []string{id, "0", "3600000", d.lifeMS}, Behind: true, Again: redisconn.Idempotent,
	}
}
