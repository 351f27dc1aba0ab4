package redlock

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// uncertain reports whether a request may still be carried out.
func uncertain(err error) bool {
	return !errors.Is(err, driver.ErrNotSent) && !errors.Is(err, driver.ErrRefused)
}

// final reports whether a master refuses, and will however often it is asked: as a rule because
// what stands there is damaged.
func final(err error) bool {
	return errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent)
}

// answered reports whether an error is a master's answer: to ask again at once does not help.
func answered(err error) bool {
	var answer *redisconn.Error
	return errors.As(err, &answer)
}

var errClosed = fmt.Errorf("redlock: %w: the driver is closed", driver.ErrNotSent)

// half is the error of a step of which another part may have been done.
func half(err error) error {
	if uncertain(err) {
		return err
	}
	return errors.New(err.Error())
}
