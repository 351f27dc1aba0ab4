package redlock_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

func TestDriftIsTakenOff(t *testing.T) {
	t.Parallel()
	set := []*servertest.Server{servertest.Redis(t), servertest.Redis(t), servertest.Redis(t)}
	redistest.TryDrift(t, open(t, urlOf(addrs(set))+patient), "m", set...)
}
