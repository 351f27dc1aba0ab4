package redlock_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// Every master's connection reads the same parameters: what is known is said once all the same.
func TestURL_SaysOnceWhatIsKnown(t *testing.T) {
	_, err := driver.OpenURL(t.Context(), "redlock://a,b,c?colour=red")
	if err == nil || !strings.Contains(err.Error(), `unknown parameter "colour"`) || strings.Count(err.Error(), "keepalive") != 1 {
		t.Errorf("an unknown parameter: %v, want the known ones, each once", err)
	}
}
