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

// Each of the masters may have an IPv6 address.
func TestURL_ListsIPv6Addresses(t *testing.T) {
	const list = "redlock://locker:s%2Fcret@[::1]:1,127.0.0.1:1,[fe80::1%25eth0]:1/3?node_timeout=1s"
	if shown, want := driver.Redact(list), "redlock://locker:xxxxx@[::1]:1,127.0.0.1:1,[fe80::1%25eth0]:1/3?node_timeout=1s"; shown != want {
		t.Errorf("shown as %s, want %s", shown, want)
	}
	_, err := driver.OpenURL(t.Context(), list)
	for _, name := range []string{"0 of 3 masters answered", "master 1 ([::1]:1)", "master 2 (127.0.0.1:1)", "master 3 ([fe80::1%eth0]:1)"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("nobody listens: %v, want %q in it", err, name)
		}
	}
	for _, list := range []string{"redlock://[::1]:1,[::1:1,[::1]:1", "redlock://[::1]:1,[::1]:x", "redlock://[::1],[secret@h]", "redlock://u:secret@[::1]:1,[127.0.0.1]:1", "redlock://u:secret/@[::1]:1,[::1]:2"} {
		if _, err := driver.OpenURL(t.Context(), list); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want an error that does not quote it", list, err)
		}
		if shown := driver.Redact(list); strings.Contains(shown, "secret") {
			t.Errorf("%q is shown as %q", list, shown)
		}
	}
}
