package redislock_test

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

func TestBreakIsHeard(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	redistest.TryBreakIsHeard(t, func(t *testing.T) driver.Driver { return byURL(t, s.Addr()) },
		driver.Mutex, driver.Write, driver.Read, driver.Permit)
}
