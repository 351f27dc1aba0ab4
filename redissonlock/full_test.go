//go:build linux || darwin

package redissonlock_test

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

func TestFullMemory(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	redistest.TryFullMemory(t, []*servertest.Server{s}, func() driver.Driver { return byURL(t, s.Addr()) }, true)
}
