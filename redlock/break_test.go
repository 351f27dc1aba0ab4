package redlock_test

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
)

func TestBreakIsHeard(t *testing.T) {
	t.Parallel()
	url := urlOf(addrs(startMasters(t, 3)))
	redistest.TryBreakIsHeard(t, func(t *testing.T) driver.Driver { return open(t, url) }, driver.Mutex, driver.Write)
}
