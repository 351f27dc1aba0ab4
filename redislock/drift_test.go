package redislock_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

func TestDriftIsTakenOff(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	redistest.TryDrift(t, byURL(t, s.Addr()), "m", s)
}
