package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// lineCall returns the call of the long script in which old is released and c joins, with the
// channel of sub in its record; old, c or sub may be nil. again says that c was in line before.
func (s *session) lineCall(old, c *claim, sub *redisstore.Subscription, again bool) redisconn.Call {
	args := make([]string, 4, 13)
	args[1], args[2], args[3] = digit(s.d.options.Shared), s.KeepMS, s.d.lifeMS
	var k keys
	if old != nil {
		k, args[0] = old.keys, old.ID
	}
	if c != nil {
		k = c.keys
		var channel string
		if sub != nil {
			channel = sub.Channel
		} else { // it does not wait, but gets the message of a break
			channel = s.d.subs.Channel(c.Name)
		}
		args = append(args, c.ID, redisstore.Letter(c.Kind), strconv.Itoa(c.Weight), strconv.Itoa(c.Limit), s.TTLMS,
			digit(c.Queue), channel, string(s.info(c, channel).Append(make([]byte, 0, 256))), digit(again))
	}
	return redisconn.Call{Script: lineScript, Keys: k.all(), Args: args}
}

// info returns what people are shown of a claim.
func (s *session) info(c *claim, channel string) redisstore.Info {
	return redisstore.Info{Owner: s.Owner, Kind: redisstore.Letter(c.Kind), Note: c.Note, Passes: c.Passes, Channel: channel}
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// releaseCall returns the call of the long script that releases a claim, of this process or another
// one. The answer has no ID.
func (d *Driver) releaseCall(k keys, id string) redisconn.Call {
	return redisconn.Call{
		Script: lineScript, Keys: k.all(), Args: []string{id, "0", "3600000", d.lifeMS}, Behind: true, Again: redisconn.Idempotent,
	}
}

// lineReply is the answer of the long script.
type lineReply struct {
	state, left, counter, wait, head, why int64
	value                                 string
}

// States in the answer of the long script.
const (
	lineOut = iota
	lineWaits
	lineHeld
	lineBroken
	lineGone
	lineMisfit
)

func parseLineReply(v any) (r lineReply, err error) {
	f, _ := v.([]any)
	if len(f) != 7 {
		return r, errors.New("the long script answered something else than seven fields")
	}
	for i, n := range []*int64{&r.state, &r.left, &r.counter, &r.wait, &r.head, &r.why} {
		var ok bool
		if *n, ok = f[i].(int64); !ok {
			return r, fmt.Errorf("the long script answered %T where a number belongs", f[i])
		}
	}
	r.value, _ = f[6].(string)
	return r, nil
}

// wasHeld reports whether the long script has answered that the claim that left was held.
func wasHeld(v any) bool {
	r, err := parseLineReply(v)
	return v == int64(1) || err == nil && r.left == 1
}

// failed records that a request for c failed. What a script did before an error in it stays done.
func (s *session) failed(c *claim, err error) error {
	if errors.Is(err, driver.ErrRefused) && redisconn.InScript(err) {
		s.d.orphans.Add(s.d.releaseCall(c.keys, c.ID), 0)
	}
	return s.Failed(c, err)
}

// runLine runs the long script and reads its answer; c joins by it.
func (s *session) runLine(ctx context.Context, c *claim, call redisconn.Call) (r lineReply, err error) {
	v, err := s.d.store.Run.Run(ctx, call)
	if err == nil {
		r, err = parseLineReply(v)
	}
	if err != nil {
		return r, s.failed(c, err)
	}
	return r, nil
}
