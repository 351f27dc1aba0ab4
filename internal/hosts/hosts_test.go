package hosts_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/hosts"
)

// The hosts by which a server is reached are its addresses and its names; a name that somebody else has bound to the address is none.
func TestKnown(t *testing.T) {
	t.Parallel()
	allowed := []string{"locks.example.org", "10.0.0.5", "alt.example.org:8443"}
	for host, want := range map[string]bool{
		"127.0.0.1:7070": true, "localhost": true, "LocalHost:1": true, "[::1]:7070": true, "[::1]": true, "127.1.2.3": true, "localhost.": true,
		"locks.example.org": true, "locks.example.org:7070": true, "LOCKS.example.org.": true, "10.0.0.5:7070": true,
		"alt.example.org:8443": true, "alt.example.org": false, "alt.example.org:80": false,
		"evil.example": false, "evil.example:7070": false, "localhost.evil.example": false, "locks.example.org.evil.example": false,
		"": false, ":7070": false, "10.0.0.6": false, "127.0.0.1.evil.example": false, "0x7f000001": false, "2130706433": false, "[": false,
		"evil.example#localhost": false, "evil.example@localhost": false, "[::1": false, "::1": true, "localhost:http": false, "localhost:7070@evil.example": false,
	} {
		if got := hosts.Known(host, allowed); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
