package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redislock/internal/batch"
)

// request is that of one claim: to take a free name, or to free one that nobody waits for.
type request struct {
	script *redisconn.Script // takeScript or freeScript
	keys   *keys
	value  string                             // to take, the value; to free, its beginning
	ttl    string                             // to take, in ms
	free   func(context.Context) (any, error) // to free alone
	again  func() bool                        // see redisconn.Call
}

// send returns the answer to a request: one of several that one script is run for, where many ask
// at the same time. On a Cluster a script has one slot, so each goes alone there.
func (d *Driver) send(ctx context.Context, r request) (any, error) {
	if d.store.Cluster {
		return d.alone(ctx, r)
	}
	return d.batch.Do(ctx, r)
}

func (d *Driver) alone(ctx context.Context, r request) (any, error) {
	if r.free != nil {
		return r.free(ctx)
	}
	return d.store.Run.Run(ctx, d.callFor(takeScript, []request{r}))
}

// callFor is a run of a script for several requests. Where one of them may not be sent again, none
// is.
func (d *Driver) callFor(script *redisconn.Script, some []request) redisconn.Call {
	c := redisconn.Call{Script: script, Keys: make([]string, 0, 2*len(some)), Args: make([]string, 0, 2*len(some)+1)}
	for _, r := range some {
		c.Keys, c.Args = append(c.Keys, r.keys.name), append(c.Args, r.value)
		if script == takeScript {
			c.Keys, c.Args = append(c.Keys, r.keys.counter), append(c.Args, r.ttl)
		}
	}
	if script == takeScript {
		c.Args = append(c.Args, d.lifeMS)
	}
	c.Again = func() bool {
		yes := true
		for _, r := range some {
			yes = r.again() && yes
		}
		return yes
	}
	return c
}

// together runs both scripts, in one go, for several requests.
func (d *Driver) together(all []request) []batch.Answer {
	var calls []redisconn.Call
	var about [][]int // places in all
	for _, script := range []*redisconn.Script{freeScript, takeScript} {
		var some []request
		var at []int
		for i, r := range all {
			if r.script == script {
				some, at = append(some, r), append(at, i)
			}
		}
		if len(some) > 0 {
			calls, about = append(calls, d.callFor(script, some)), append(about, at)
		}
	}
	answers := make([]batch.Answer, len(all))
	for i, reply := range d.store.Run.RunAll(sessions.Within(context.Background(), d.store.Timeout), calls) {
		d.divide(all, about[i], reply, answers)
	}
	return answers
}

// divide gives each request that one script was run for its part of the answer.
func (d *Driver) divide(all []request, at []int, reply redisconn.Reply, answers []batch.Answer) {
	values, _ := reply.Value.([]any)
	if len(at) == 1 && all[at[0]].script == takeScript {
		values = []any{reply.Value} // the script takes one name as it does alone
	}
	for j, i := range at {
		a := &answers[i]
		switch {
		case len(at) > 1 && errors.Is(reply.Err, driver.ErrRefused): // for one of the names, but the server does not say which
			a.Value, a.Err = d.alone(sessions.Within(context.Background(), d.store.Timeout), all[i])
		case reply.Err != nil:
			a.Err = reply.Err
		case j < len(values):
			a.Value = values[j]
		default:
			a.Err = fmt.Errorf("the server answered %d of %d claims", len(values), len(at))
		}
	}
}
