package etcdlock

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"github.com/interlock-go/interlock/driver"
)

var errClosed = fmt.Errorf("etcdlock: %w: the driver is closed", driver.ErrNotSent)

// certain reports whether a request that failed has changed nothing.
func certain(err error) bool {
	return errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrSessionLost)
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
