package rowline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Fate says whether a failed request was executed.
type Fate uint8

// The fates of a request.
const (
	Certain Fate = iota // the error says it, and another attempt would not help
	Undone              // the server has not executed it, or has rolled it back
	Unknown             // the server may have executed it
)

// Request is one request to a server, as its driver sends it.
type Request struct {
	Send     func() error      // sends it once
	Fate     func(error) Fate  // of an error of Send
	Classify func(error) error // returns the error by its kind, as package driver has them
}

// Do sends r until its fate is known. An attempt that is undone is repeated until ctx has ended or
// end has passed. One of unknown fate is repeated once: every request of a [Store] may be executed
// twice. Twice reports whether that happened.
func (r *Request) Do(ctx context.Context, end time.Time) (twice bool, err error) {
	for {
		err = r.Send()
		if err == nil {
			return twice, nil
		}
		if ctx.Err() == nil && time.Now().Before(end) {
			switch fate := r.Fate(err); {
			case fate == Undone:
				continue
			case fate == Unknown && !twice:
				twice = true
				continue
			}
		}
		err = r.Classify(err)
		if twice && errors.Is(err, driver.ErrNotSent) { // the second attempt does not show the fate of the first
			err = fmt.Errorf("%s, after a request without an answer", err.Error())
		}
		return twice, err
	}
}
