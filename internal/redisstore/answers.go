package redisstore

import (
	"strings"

	"github.com/interlock-go/interlock/redisconn"
)

// parseInfo reads lines of the form name:value.
func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // of RESP3
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// unavailable reports whether an error says that this user may not use the command, or that the
// server does not have it.
func unavailable(err error) bool { return redisconn.Is(err, "NOPERM") || redisconn.Is(err, "ERR") }
