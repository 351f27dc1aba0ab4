package servertest_test

import (
	"bufio"
	"net"
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// says asks a memcached.
func says(t *testing.T, s *servertest.Server, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(request + "\r\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestMemcachedForgetsWithItsProcess(t *testing.T) {
	t.Parallel()
	s := servertest.Memcached(t, "-m", "8")
	if got := says(t, s, "ms k 1 T60\r\na"); got != "HD\r\n" {
		t.Fatalf("it answers %q", got)
	}
	if got := says(t, s, "mg k v"); got != "VA 1\r\n" {
		t.Fatalf("it answers %q", got)
	}
	for _, end := range []func() error{s.Stop, s.Kill} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := says(t, s, "mg k v"); got != "EN\r\n" {
			t.Errorf("after its end it answers %q", got)
		}
		if got := says(t, s, "ms k 1 T60\r\na"); got != "HD\r\n" {
			t.Fatalf("it answers %q", got)
		}
	}
	if want := "memcached://" + s.Addr(); s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	if s, err := servertest.StartMemcached(t.Context(), servertest.Options{TLS: true}); err == nil {
		t.Errorf("%v speaks TLS", s)
	}
}
