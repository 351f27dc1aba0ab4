//go:build linux || darwin

package torture

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/torture/flawed"
)

// openStore opens the store of a URL, also a lock with a flaw, of which no other package knows.
func openStore(ctx context.Context, url string) (driver.Driver, error) {
	if strings.HasPrefix(url, flawed.Prefix) {
		return flawed.Open(ctx, url)
	}
	return driver.OpenURL(ctx, url)
}

// reach opens a store that may be stopped, be down or be cut off at the moment.
func reach(ctx context.Context, url string) (driver.Driver, error) {
	for deadline := now().add(comeUp / 2); ; pause(20*time.Millisecond, ctx.Done()) {
		store, err := openStore(ctx, url)
		if err == nil || ctx.Err() != nil || now() > deadline {
			return store, err
		}
	}
}
