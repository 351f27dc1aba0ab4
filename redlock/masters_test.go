package redlock_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// startMasters starts n servers for the test.
func startMasters(t *testing.T, n int, args ...string) []*servertest.Server {
	t.Helper()
	servers := make([]*servertest.Server, n)
	for i := range servers {
		servers[i] = servertest.Redis(t, args...)
	}
	return servers
}

func addrs(servers []*servertest.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

func urlOf(addrs []string) string { return "redlock://" + strings.Join(addrs, ",") }

// open opens masters by URL.
func open(t drivertest.T, url string) *redlock.Driver {
	t.Helper()
	return redistest.Open(t, url).(*redlock.Driver) //nolint:forcetypeassert // the scheme is ours
}
