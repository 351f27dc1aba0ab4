// Package opening has the opening of a store wait for a server: one that restarts, whose place another one is about to take, or that starts
// later than its clients. It is one of the places where a program that starts beside its store would end at once, and be started again and
// again.
package opening

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Patience is how long an opening waits where nobody has said how long.
const Patience = 15 * time.Second

// The pauses between two tries: the first one, and what they grow to. Each is shorter by up to half, so that those who lost a server together do
// not come back together.
const firstPause, lastPause = 50 * time.Millisecond, time.Second

// Wait is [Within] for whoever is told by ctx alone how long it may take: until that ends, or for [Patience] where it has no deadline.
func Wait[D any](ctx context.Context, open func(context.Context) (D, error)) (D, error) {
	patience := Patience
	if end, ends := ctx.Deadline(); ends {
		patience = time.Until(end)
	}
	return Within(ctx, patience, open)
}

// Within opens a store. While none can be reached it tries again, until patience is over or ctx ends:
//
//	try ── opened, or an error of which more tries change nothing ──> that
//	 ^ └── not sent ── patience is over ──> how long it was tried, and what the last try met
//	 └──── pause ────┘
//
// The first try has the time that the store gives itself, however little patience there is, but no more than [Patience] if that is longer; those
// after it have what is left. With none, there is one try. What is given up matches driver.ErrNotSent, and ctx's error if that has ended.
func Within[D any](ctx context.Context, patience time.Duration, open func(context.Context) (D, error)) (D, error) {
	began := time.Now()
	bounded, cancel := context.WithDeadline(ctx, began.Add(patience))
	defer cancel()
	within, done := context.WithDeadline(ctx, began.Add(max(patience, Patience)))
	defer done()
	var why error // what the last try met that had its time
	for tries := 1; ; tries++ {
		d, err := open(within)
		over := within.Err() != nil
		unreached := errors.Is(err, driver.ErrNotSent) || over && errors.Is(err, within.Err())
		if !unreached || final(err) {
			return d, err
		}
		if why == nil || !over {
			why = err
		}
		if within = bounded; over || !rest(bounded, pause(tries)) {
			if ctx.Err() == nil && patience <= 0 {
				return d, why
			}
			return d, givenUp(ctx, time.Since(began), tries, why)
		}
	}
}

// final reports whether an error will be there again, whatever else it is: somebody has to change the URL, a right or the server.
func final(err error) bool {
	if errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrUnable) || errors.Is(err, errors.ErrUnsupported) {
		return true
	}
	var alert *net.OpError // the server speaks TLS, and does not like us
	return ofTLS(err) || errors.As(err, &alert) && (alert.Op == "remote error" || alert.Op == "local error")
}

// ofTLS reports whether a certificate was refused, or the server does not speak TLS. The types are known by their names: to import package tls
// for them would link it into every program with locks, and most of what a program with a store of its own machine initializes would be that.
func ofTLS(err error) bool {
	switch fmt.Sprintf("%T", err) {
	case "*tls.CertificateVerificationError", "tls.RecordHeaderError":
		return true
	}
	switch err := err.(type) { //nolint:errorlint // it is the tree that is walked
	case interface{ Unwrap() error }:
		return ofTLS(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), ofTLS)
	}
	return false
}

// pause is that after the nth try.
func pause(n int) time.Duration {
	d := min(firstPause<<min(n-1, 8), lastPause)
	return d - rand.N(d/2)
}

// rest pauses, and reports whether ctx lasted that long.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// unreached is the error of an opening that was given up.
type unreached struct {
	text string
	is   []error
}

func (u *unreached) Error() string   { return u.text }
func (u *unreached) Unwrap() []error { return u.is }

func givenUp(ctx context.Context, took time.Duration, tries int, why error) error {
	u := &unreached{is: []error{driver.ErrNotSent}}
	if took > time.Second {
		took = took.Round(100 * time.Millisecond)
	}
	took = took.Round(time.Millisecond)
	u.text = fmt.Sprintf("no answer within %v", took)
	if err := ctx.Err(); err != nil {
		u.is = append(u.is, err)
		if cause := context.Cause(ctx); errors.Is(cause, err) {
			u.text = fmt.Sprintf("%v after %v", err, took)
		} else {
			u.text, u.is = cause.Error(), append(u.is, cause)
		}
	}
	asked := "once"
	if tries > 1 {
		asked = fmt.Sprintf("%d times", tries)
	}
	u.text = fmt.Sprintf("%s, asked %s: %v", u.text, asked, why)
	if ctx.Err() != nil || !errors.Is(why, context.DeadlineExceeded) { // that its time was over is not the end of the caller's
		u.is = append(u.is, why)
	}
	return u
}
