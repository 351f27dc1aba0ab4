package driver_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
	_ "github.com/interlock-go/interlock/memlock" // mem:
)

// A mistake in the URL is told from a store that cannot be used: to ask again helps with neither, but only the one is whoever wrote it.
func TestURLError(t *testing.T) {
	for _, rawURL := range []string{
		"nosuch:x", ":x", "locks", "",
		"mem:x?colour=red", "mem:x?fence_base=1&fence_base=2", "mem:x?fence_base=many", "mem:x?%zz",
	} {
		d, err := driver.OpenURL(t.Context(), rawURL)
		if wrong := (*driver.URLError)(nil); !errors.As(err, &wrong) {
			t.Errorf("%q: %v, %v, want an error that matches *driver.URLError", rawURL, d, err)
		}
	}
}
