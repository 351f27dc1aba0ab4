//go:build linux

package cli_test

import (
	"bytes"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"
)

// A server that takes connections and never answers does not hold up who does not want to wait, nor who has waited long enough.
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
		for _, wait := range []string{"--try", "--wait=1s"} {
			t.Run(strings.SplitN(store, ":", 2)[0]+wait, func(t *testing.T) {
				t.Parallel()
				c := exec.Command("interlock", "run", wait, "--store", store, "job", "--", "true")
				var said bytes.Buffer
				c.Stderr = &said
				var status *exec.ExitError
				if err := c.Run(); !errors.As(err, &status) || status.ExitCode() != 69 {
					t.Errorf("%v, want exit status 69", err)
				}
				if !strings.Contains(said.String(), "no answer within 2s") && !strings.Contains(said.String(), "0 of 3 masters answered") {
					t.Errorf("it says %q, want that there was no answer within 2s", said.String())
				}
			})
		}
	}
}
