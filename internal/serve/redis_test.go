package serve

import (
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// A Redis that is not there yet, goes away and is there again is shown as that, each time by
// itself, and what stands in it is counted.
func TestRedisComesAndGoes(t *testing.T) {
	t.Parallel()
	redis := servertest.Redis(t)
	if err := redis.Stop(); err != nil {
		t.Fatal(err)
	}
	s := serves(t, &Options{Stores: [][2]string{{"one", redis.URL()}}})
	status := func() int { return s.ask("GET", "/readyz", "").status }
	if got := status(); got != 503 {
		t.Errorf("before it is there: %d", got)
	}
	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		eventually(t, "it is there", func() bool { return status() == 200 })
		if err := redis.Kill(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is gone", func() bool { return status() == 503 })
		if a := s.ask("GET", "/healthz", ""); a.status != 200 {
			t.Errorf("the process is not well: %d", a.status)
		}
		if err := redis.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"does not answer", "answers again"} {
		if !s.log.has(want) {
			t.Errorf("the log does not say %q:\n%s", want, s.log)
		}
	}
}
