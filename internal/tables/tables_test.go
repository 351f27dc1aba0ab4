package tables_test

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/tables"
)

// options are those of a store whose schema fails so.
type options struct{ wrong error }

// What a URL has wrong is told from what a server says.
func TestMakerOf_TellsWhatTheURLHasWrong(t *testing.T) {
	malformed, option, server := errors.New("malformed"), errors.New("no such option"), errors.New("server away")
	m := tables.MakerOf(
		func(rawURL string) (string, *options, error) {
			if rawURL == "" {
				return "", nil, malformed
			}
			return rawURL, &options{option}, nil
		},
		func(o *options) (string, error) { return "", o.wrong },
		func(_ context.Context, c string, o *options) (string, error) {
			if c != "url" || !errors.Is(o.wrong, option) {
				t.Errorf("migrate has %q and %v, want what was parsed", c, o)
			}
			return "database shop", server
		},
	)
	_, schemaOfNone := m.Schema("")
	_, schema := m.Schema("url")
	_, migrateNone := m.Migrate(t.Context(), "")
	where, migrate := m.Migrate(t.Context(), "url")
	for name, c := range map[string]struct {
		err, want error
		ofURL     bool
	}{
		"schema of a malformed URL":  {schemaOfNone, malformed, true},
		"schema of a wrong option":   {schema, option, true},
		"migrate by a malformed URL": {migrateNone, malformed, true},
		"migrate at a dead server":   {migrate, server, false},
	} {
		if !errors.Is(c.err, c.want) || errors.As(c.err, new(*driver.URLError)) != c.ofURL {
			t.Errorf("%s: %#v, want %v, and that it is the URL's: %v", name, c.err, c.want, c.ofURL)
		}
	}
	if where != "database shop" {
		t.Errorf("migrated %q, want what the store says", where)
	}
}
