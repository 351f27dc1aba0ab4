package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"github.com/interlock-go/interlock/driver"
)

var errClosed = fmt.Errorf("etcdlock: %w: the driver is closed, or its client", driver.ErrNotSent)

// certain reports whether a request that failed has changed nothing.
func certain(err error) bool {
	return errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrSessionLost)
}

// unsure returns the error of a request that failed after an earlier one changed something: what is
// known of the failed one alone is left out.
func unsure(err error) error {
	if errors.Is(err, driver.ErrSessionLost) {
		return err
	}
	return errors.New(err.Error())
}

// classify returns the error of a request as package driver has it. An error of no kind leaves open
// whether the request was carried out.
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

// unchanged returns the error of a request that only reads. A failure of TLS, which the client
// reports as text alone, does not go away.
func unchanged(err error) error {
	if !certain(err) {
		err = fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	if text := err.Error(); strings.Contains(text, "handshake failed: tls: ") || strings.Contains(text, "remote error: tls: ") {
		err = fmt.Errorf("%w: %w", driver.ErrRefused, err)
	}
	return err
}
