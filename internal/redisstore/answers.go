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

// untold reports whether an error says that the server does not tell, or not this user.
func untold(err error) bool { return redisconn.Is(err, "NOPERM") || redisconn.Is(err, "ERR") }
