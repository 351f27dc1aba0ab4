package redislock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/redissonlock"
)

// A server that lacks commands of a lock, or has them by other names, is refused at open, by their
// names: some would be missed only when somebody waits, or when a line is long.
func TestOpenNamesTheCommandsThatAreMissing(t *testing.T) {
	s := servertest.Redis(t, "--rename-command", "LREM", "", "--rename-command", "INCRBY", "add", "--rename-command", "HKEYS", "")
	for url, names := range map[string]string{
		s.URL(): "INCRBY, LREM",
		strings.Replace(s.URL(), "redis://", "redisson://", 1): "INCRBY, HKEYS",
	} {
		client, err := interlock.Open(t.Context(), url, nil)
		if err == nil {
			_ = client.Close()
		}
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "does not know "+names+",") {
			t.Errorf("%s: %v, want it refused by name: %s", url, err, names)
		}
	}
}
