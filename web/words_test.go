package web_test

import (
	"strconv"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// token is that of a lease as pages have it.
func token(l *interlock.Lease) string { return strconv.FormatUint(l.Fence(), 10) }

// tokenOf is that of a claim.
func tokenOf(c driver.Holder) string { return strconv.FormatUint(c.Fence, 10) }
