package drivertest

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// failure travels as a panic from where a law was seen broken to where the trial ends.
type failure struct {
	what string
	void string // why it proves nothing; empty: it does
	nth  int    // in the trial, counted from 1: what comes later may be its consequence
}

// caught runs f and returns the failure that ended it.
func caught(f func()) (failed *failure) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *failure:
			failed = r
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// during runs f, and a failure that ends it says during what.
func during(what string, f func()) {
	if failed := caught(f); failed != nil {
		failed.what += ", " + what
		panic(failed)
	}
}

// sooner reports whether f was before the other.
func sooner(f, other *failure) bool { return f.nth < other.nth }

// unanswered is an error of a driver that gave the store less time than it was given itself. It
// tells nothing of a law.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// tardy is how long no store takes to refuse something: an error that comes later comes from a wait
// for an answer.
const tardy = 200 * time.Millisecond

// noAnswer reports whether an error is none that the contract knows, which would be the store's
// answer.
func noAnswer(err error) bool {
	for _, answer := range []error{nil, driver.ErrSessionLost, driver.ErrGone, driver.ErrRefused, driver.ErrBroken} {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}

// timedOut reports whether an error says that time was over.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}
