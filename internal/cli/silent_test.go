//go:build linux

package cli_test

import (
	"bytes"
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// A server that takes connections and never answers does not hold up who does not want to wait, nor
// who has waited long enough.
func TestSilentStore(t *testing.T) {
	var addrs []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { _ = c.Close() })
			}
		}()
		addrs = append(addrs, l.Addr().String())
	}
	for _, store := range []string{"redis://" + addrs[0], "redisson://" + addrs[0], "redlock://" + strings.Join(addrs, ",")} {
		for wait, within := range map[string]string{"--try": "2s", "--wait=1": "1s", "--wait=0.1": "1s", "--wait=1500ms": "1.5s"} {
			t.Run(strings.SplitN(store, ":", 2)[0]+wait, func(t *testing.T) {
				t.Parallel()
				c := exec.Command("interlock", "run", wait, "--store", store, "job", "--", "true")
				var said bytes.Buffer
				c.Stderr = &said
				var status *exec.ExitError
				if err := c.Run(); !errors.As(err, &status) || status.ExitCode() != 69 {
					t.Errorf("%v, want exit status 69", err)
				}
				if !strings.Contains(said.String(), "no answer within "+within) && !strings.Contains(said.String(), "0 of 3 masters answered") {
					t.Errorf("it says %q, want that there was no answer within %s", said.String(), within)
				}
			})
		}
	}
}

// A store that falls silent before the release costs the command nothing but the certainty that
// others get the lock now, and people are told.
func TestReleaseIsNotConfirmed(t *testing.T) {
	t.Parallel()
	for _, quiet := range []bool{false, true} {
		t.Run("quiet="+strconv.FormatBool(quiet), func(t *testing.T) {
			t.Parallel()
			server := servertest.Redis(t)
			args := []string{"run", "--store", server.URL(), "job", "--", "kill", "-STOP", strconv.Itoa(server.Pid())}
			if quiet {
				args = append([]string{"run", "--quiet"}, args[1:]...)
			}
			c := exec.Command("interlock", args...)
			var said bytes.Buffer
			c.Stderr = &said
			if err := c.Run(); err != nil {
				t.Errorf("%v: %s; want the status of the command", err, said.String())
			}
			want := []string{`release not confirmed: "job"`, server.URL(), "when its TTL of 15s is over"}
			for _, w := range want {
				if quiet == strings.Contains(said.String(), w) {
					t.Errorf("quiet %v: it says %q, want %q: %v", quiet, said.String(), w, !quiet)
				}
			}
		})
	}
}
