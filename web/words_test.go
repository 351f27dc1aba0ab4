package web_test

import (
	"strconv"

	"github.com/interlock-go/interlock"
)

// token is that of a lease as pages have it.
func token(l *interlock.Lease) string { return strconv.FormatUint(l.Fence(), 10) }
