package servertest_test

import (
	"net"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

func TestEncryptedServerSpeaksTLSOnly(t *testing.T) {
	t.Parallel()
	s, err := servertest.Start(t.Context(), servertest.Options{TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if want := "rediss://" + s.Addr(); s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := said(t, s, "PING"); got != "PONG" {
		t.Errorf("PING: %q", got)
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, _ := c.Read(b); strings.Contains(string(b[:n]), "PONG") {
		t.Errorf("it answers %q in the clear", b[:n])
	}

	// Masters, replicas and nodes would have to speak it among themselves.
	if _, err := servertest.StartSentinel(t.Context(), servertest.Options{TLS: true}); err == nil {
		t.Error("StartSentinel takes TLS and ignores it")
	}
	if _, err := servertest.StartCluster(t.Context(), 1, 0, servertest.Options{TLS: true}); err == nil {
		t.Error("StartCluster takes TLS and ignores it")
	}
}
