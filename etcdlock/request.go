package etcdlock

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// twice makes a request, and makes it again beside the first attempt if there is no answer soon, up
// to three times; the first answer counts. The client sends requests to the members in turn, and
// one of three may have stopped while the others are a majority: what is sent to it has no answer.
// So a request may be carried out more than once. Doubt is the number of attempts of which it is
// not known whether they were carried out, or still will be.
func twice[T any](ctx context.Context, client *clientv3.Client, ask func(context.Context) (T, error)) (value T, doubt int, err error) {
	if client.Ctx().Err() != nil {
		return value, 0, errClosed // the client would repeat the request until ctx ends
	}
	if len(client.Endpoints()) == 1 {
		value, err = ask(ctx)
		if err = classify(err); err != nil && !certain(err) {
			doubt = 1
		}
		return value, doubt, err
	}
	type answer struct {
		value T
		err   error
	}
	const tries = 3
	soon, answers := 300*time.Millisecond, make(chan answer, tries)
	if end, ok := ctx.Deadline(); ok {
		soon = max(min(soon, time.Until(end)/(tries+1)), soon/3)
	}
	late := time.NewTicker(soon)
	defer late.Stop()
	for asked, back, due := 0, 0, true; ; {
		if due && asked < tries {
			asked++
			doubt++
			go func() {
				value, err := ask(ctx)
				answers <- answer{value, classify(err)}
			}()
		}
		select {
		case <-late.C:
			due = true
			// A store that is slow as a whole does not get three times the load.
			late.Reset(2 * soon)
		case a := <-answers:
			due = false
			back++
			if a.err == nil || certain(a.err) {
				doubt--
			}
			if a.err == nil || errors.Is(a.err, driver.ErrSessionLost) {
				return a.value, doubt, a.err
			}
			if err == nil || certain(err) {
				err = a.err
			}
			if back == asked {
				return value, doubt, err
			}
		}
	}
}
