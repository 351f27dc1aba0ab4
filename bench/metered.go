package main

import (
	"context"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
)

// metered counts what the core asks of a driver. It costs an atomic addition
// per request, and the core passes a lock on 31 times between two requests.
type metered struct {
	driver.Driver
	operations atomic.Int64 // Acquire, Wait, Release, Requeue
	renewals   atomic.Int64
}

func (m *metered) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := m.Driver.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	wrapped := meteredSession{Session: s, m: m}
	if r, ok := s.(driver.Requeuer); ok {
		return meteredRequeuer{meteredSession: wrapped, requeuer: r}, nil
	}
	return wrapped, nil
}

type meteredSession struct {
	driver.Session
	m *metered
}

func (s meteredSession) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s.m.operations.Add(1)
	return s.Session.Acquire(ctx, c)
}

func (s meteredSession) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s.m.operations.Add(1)
	return s.Session.Wait(ctx, c)
}

func (s meteredSession) Release(ctx context.Context, c driver.Claim) (bool, error) {
	s.m.operations.Add(1)
	return s.Session.Release(ctx, c)
}

func (s meteredSession) Renew(ctx context.Context) (driver.Renewal, error) {
	s.m.renewals.Add(1)
	return s.Session.Renew(ctx)
}

// Lost keeps the session a driver.LossNotifier; a store without notices never
// yields one.
func (s meteredSession) Lost() <-chan driver.Loss {
	if n, ok := s.Session.(driver.LossNotifier); ok {
		return n.Lost()
	}
	return nil
}

// Nudge keeps the session a driver.Nudger.
func (s meteredSession) Nudge() <-chan struct{} {
	if n, ok := s.Session.(driver.Nudger); ok {
		return n.Nudge()
	}
	return nil
}

type meteredRequeuer struct {
	meteredSession
	requeuer driver.Requeuer
}

func (s meteredRequeuer) Requeue(ctx context.Context, old, next driver.Claim) (driver.Grant, bool, error) {
	s.m.operations.Add(1)
	return s.requeuer.Requeue(ctx, old, next)
}
