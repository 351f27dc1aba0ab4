package driver_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

var nowhere error // why the store cannot be opened

func init() {
	driver.Register("nowhere", func(context.Context, *url.URL) (driver.Driver, error) { return nil, nowhere })
}

// Whoever cannot reach a store hears where that was tried, once, and nothing else of the URL.
func TestOpenURLSaysWhere(t *testing.T) {
	for _, c := range []struct {
		fails error
		says  string
	}{
		{fmt.Errorf("bad connection: %w", driver.ErrNotSent), "bad connection: not sent, at a:1,b:2"},
		{fmt.Errorf("connect to b:2: %w", driver.ErrNotSent), "connect to b:2: not sent"},
		{fmt.Errorf("the password: %w", driver.ErrRefused), "the password: refused by the store"},
		{errors.New("malformed"), "malformed"},
	} {
		nowhere = c.fails
		_, err := driver.OpenURL(t.Context(), "nowhere://me:hunter2@a:1,b:2/x?y=hunter2")
		if !errors.Is(err, c.fails) || err.Error() != c.says {
			t.Errorf("%v: %v, want %q", c.fails, err, c.says)
		}
	}
}
