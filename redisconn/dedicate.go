package redisconn

import (
	"context"
	"errors"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/internal/redislink"
)

// idle is how many connections that have ended while they were idle rueidis may offer to who asks for one of its own.
const idle = 8

// dedicate returns a connection of its own that answers. Where an idle one may lead to a former master, it shows by a write
// that does nothing whether it does.
func (c *conn) dedicate(until *deadline, client rueidis.Client, key string) (d rueidis.DedicatedClient, giveBack func(), err error) {
	question, strayed := []string{"PING"}, c.straying()
	if strayed {
		question = redislink.Probe(key)
	}
	for range idle {
		d, giveBack = client.Dedicate()
		_, err = read(d.Do(until, d.B().Arbitrary(question...).Build()).ToAny())
		moved := Moved(nil, nil, err)
		var refusal *Error
		if err == nil || strayed && !moved && errors.As(err, &refusal) { // a right is missing, which says nothing
			return d, giveBack, nil
		}
		d.Close()
		giveBack()
		if !Broken(err) && !moved || until.Err() != nil {
			break
		}
	}
	return nil, nil, err
}

// apart opens a connection, which rueidis does without looking at a context: when ctx ends first the caller goes, and what
// was opened for nobody is closed.
func apart[T interface{ Close() }](ctx context.Context, open func() (T, error)) (T, error) {
	type opened struct {
		t   T
		err error
	}
	done := make(chan opened, 1)
	go func() {
		t, err := open()
		done <- opened{t, err}
	}()
	select {
	case o := <-done:
		return o.t, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				o.t.Close()
			}
		}()
		var none T
		return none, ctx.Err()
	}
}
