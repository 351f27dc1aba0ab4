package redisstore

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

func TestKnowsNamesWhatTheServerLacks(t *testing.T) {
	known := []any{"get", int64(2)}
	for what, c := range map[string]struct {
		answer any
		err    error
		names  string
		fails  error
	}{
		"all":              {[]any{known, known, known}, nil, "", nil},
		"one is missing":   {[]any{known, nil, known}, nil, "EVALSHA", driver.ErrRefused},
		"an empty answer":  {[]any{known, []any{}, known}, nil, "EVALSHA", driver.ErrRefused},
		"two are missing":  {[]any{nil, known, nil}, nil, "GET, PUBSUB", driver.ErrRefused},
		"not for us":       {nil, redisconn.ParseError("NOPERM this user has no permissions to run the 'command' command"), "", nil},
		"no such question": {nil, redisconn.ParseError("ERR unknown command 'COMMAND'"), "", nil},
		"something else":   {"OK", nil, "", nil},
		"no answer":        {nil, io.ErrUnexpectedEOF, "", io.ErrUnexpectedEOF},
	} {
		var asked []string
		err := Knows(t.Context(), func(_ context.Context, words ...string) (any, error) {
			asked = words
			return c.answer, c.err
		}, []string{"get", "evalsha", "pubsub|numsub"})
		if !errors.Is(err, c.fails) || c.names != "" && !strings.Contains(err.Error(), "does not know "+c.names+",") {
			t.Errorf("%s: %v, want %v that names %q", what, err, c.fails, c.names)
		}
		if want := []string{"COMMAND", "INFO", "get", "evalsha", "pubsub"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
	}
}
