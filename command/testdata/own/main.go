// Command own is interlock with one more store, as whoever writes a driver builds it.
package main

import (
	"context"
	"net/url"

	"github.com/interlock-go/interlock/command"
	"github.com/interlock-go/interlock/driver"
	_ "github.com/interlock-go/interlock/filelock"
)

func init() {
	driver.Register("own", func(ctx context.Context, u *url.URL) (driver.Driver, error) {
		return driver.OpenURL(ctx, "file:"+u.Path) // somebody else's store would be here
	})
}

func main() { command.Main() }
