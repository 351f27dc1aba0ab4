//go:build linux || darwin

package monotonic

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

const clockVariable = "INTERLOCK_TEST_CLOCK"

func TestMain(m *testing.M) {
	if os.Getenv(clockVariable) != "" { // a process of TestOneClock
		fmt.Println(int64(Now()))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// One clock for all processes: what another process reads lies between two readings here.
func TestOneClock(t *testing.T) {
	for range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), clockVariable+"=1")
		before := Now()
		out, err := cmd.Output()
		after := Now()
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if Instant(n) < before || Instant(n) > after {
			t.Errorf("another process reads %d, which is not between %d and %d", n, before, after)
		}
	}
}
