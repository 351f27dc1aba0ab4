package redislock_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/worker"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redislock"
)

// opening makes a driver to the server at addr, with a client of its own.
type opening func(t drivertest.T, addr string) driver.Driver

// byURL is the client that redislock makes itself.
func byURL(t drivertest.T, addr string) driver.Driver { return redistest.Open(t, "redis://"+addr) }

func byRueidis(t drivertest.T, addr string) driver.Driver { return over(t, redistest.Rueidis(t, addr)) }

func byGoRedis(t drivertest.T, addr string) driver.Driver {
	return over(t, redistest.GoRedis(t, redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})))
}

func over(t drivertest.T, conn redisconn.Conn) driver.Driver {
	d, err := redislock.New(context.Background(), conn, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

func TestMain(m *testing.M) {
	worker.Work()
	m.Run()
}

// budget is of a store on one server or several.
var budget = drivertest.Budget{Acquire: 1, Release: 1, Handoff: 1}

func TestConformanceByURL(t *testing.T) { conform(t, byURL) }

func TestConformanceByRueidis(t *testing.T) {
	if testing.Short() {
		t.Skip("another client, the same laws: make proof")
	}
	conform(t, byRueidis)
}

func TestConformanceByGoRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("another client, the same laws: make proof")
	}
	conform(t, byGoRedis)
}

func conform(t *testing.T, open opening) {
	t.Helper()
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Harness { return redistest.Single(t, "redis", budget, open) })
}

func TestFullMemory(t *testing.T) {
	t.Parallel()
	redistest.TryFullMemory(t, byURL)
}
