package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/interlock-go/interlock/driver"
)

var errClosed = fmt.Errorf("etcdlock: %w: the driver is closed, or its client", driver.ErrNotSent)

// certain reports whether a request that failed has changed nothing.
func certain(err error) bool {
	return errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrSessionLost)
}

// unsure is the error of a request that failed, whatever is known of that, where what an earlier one did is left behind.
func unsure(err error) error {
	if errors.Is(err, driver.ErrSessionLost) {
		return err
	}
	return errors.New(err.Error())
}

// classify says what is known of a request that failed. Of what it does not name nobody knows whether it was carried out.
func classify(err error) error {
	err = rpctypes.Error(err) // the client's own errors have what the server said, the transport's do not
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return driver.ErrSessionLost
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: %w: the store's quota is used up: compact, defragment and disarm its alarm: %w", driver.ErrUnable, driver.ErrNotSent, err)
	case errors.Is(err, rpctypes.ErrCorrupt):
		return fmt.Errorf("%w: %w", driver.ErrUnable, err)
	case errors.Is(err, rpctypes.ErrNoLeader), errors.Is(err, rpctypes.ErrTooManyRequests), errors.Is(err, rpctypes.ErrNotCapable):
		return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	var said rpctypes.EtcdError
	if errors.As(err, &said) {
		switch said.Code() {
		case codes.InvalidArgument, codes.PermissionDenied, codes.FailedPrecondition, codes.Unauthenticated, codes.OutOfRange:
			return fmt.Errorf("%w: %w", driver.ErrRefused, err)
		}
	}
	return err
}

// unchanged is the error of a look, which changes nothing. That of TLS, which the client has as text alone, is there again at the next one.
func unchanged(err error) error {
	if !certain(err) {
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	if text := err.Error(); strings.Contains(text, "handshake failed: tls: ") || strings.Contains(text, "remote error: tls: ") {
		err = fmt.Errorf("%w: %w", driver.ErrRefused, err)
	}
	return err
}

// twice asks, and asks again beside that where no answer comes soon, and once more; the first answer counts. The client sends one request after
// the other to its members in turn: of three one may stand still while two are a majority, and whatever it gets would have no answer. So what
// is asked may be carried out more than once. Of doubt attempts nobody knows whether they were, or will be.
func twice[T any](ctx context.Context, client *clientv3.Client, ask func(context.Context) (T, error)) (value T, doubt int, err error) {
	if client.Ctx().Err() != nil {
		return value, 0, errClosed // the client asks again and again for as long as ctx lets it
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
			late.Reset(2 * soon) // a store that is slow altogether is not to have three times as much to do
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

// get reads keys.
func (d *Driver) get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	r, _, err := twice(ctx, d.client, func(ctx context.Context) (*clientv3.GetResponse, error) { return d.client.Get(ctx, key, opts...) })
	return r, err
}
