package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// OpenClient opens a client for the test, at whose end it must close in order.
func OpenClient(t *testing.T, url string, o *interlock.Options) *interlock.Client {
	t.Helper()
	client, err := interlock.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// Open opens a driver by URL, as another process would.
func Open(t drivertest.T, url string) driver.Driver {
	t.Helper()
	d, err := driver.OpenURL(context.Background(), url)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

// Claims returns who stands at the name.
func Claims(t *testing.T, url, name string) []driver.Holder {
	t.Helper()
	d := Open(t, url)
	defer func() { _ = d.Close(t.Context()) }()
	l, err := d.(driver.Inspector).Line(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Claims
}

// Until looks again and again until a condition is met. What says what is wrong when it is not.
func Until(t drivertest.T, limit time.Duration, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !met(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("after %v: %s", limit, what)
		}
	}
}

// Receive takes what must come. What says what it is.
func Receive[V any](t drivertest.T, limit time.Duration, what string, from <-chan V) (v V) {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case v = <-from:
	case <-timer.C:
		t.Fatalf("after %v still not: %s", limit, what)
	}
	return v
}

// Isolate has the master's replica learn nothing from here on. Sentinels may promote it all the
// same.
func Isolate(t drivertest.T, s *servertest.Sentinels) {
	t.Helper()
	for _, words := range [][]string{{"ACL", "SETUSER", "default", "-psync", "-sync"}, {"CLIENT", "KILL", "TYPE", "replica"}} {
		if _, err := s.Master.Do(words...); err != nil {
			t.Fatalf("%q: %v", words, err)
		}
	}
}
