package redisconn

import (
	"context"
	"errors"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/internal/redislink"
)

// idle is how many connections that have ended while they were idle rueidis may return before one
// that stands.
const idle = 8

// dedicate returns a connection for one caller, which has just answered. If an idle one may lead to
// a former master, the question is a write that changes nothing.
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

// apart opens a connection for a caller. What is opened after the caller has gone is closed.
func apart[T interface{ Close() }](ctx context.Context, open func() (T, error)) (T, error) {
	return aside(ctx, open, func(t T) { t.Close() })
}
