// Command tortured tries what the locks of a store are worth, as whoever writes a driver does: see docs/writing-a-driver.md.
package main

import (
	"context"
	"log"
	"net/url"
	"os"
	"time"

	"github.com/interlock-go/interlock/driver"
	_ "github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/torture"
)

func init() {
	driver.Register("own", func(ctx context.Context, u *url.URL) (driver.Driver, error) {
		return driver.OpenURL(ctx, "file:"+u.Path) // somebody else's store would be here
	})
}

func main() {
	torture.Main() // first: this program is executed again as its workers
	report, err := torture.Run(context.Background(), torture.Config{Store: os.Args[1], For: 5 * time.Second}, os.Stderr)
	if err != nil {
		log.Fatal(err) // nothing could be judged
	}
	if err := report.Print(os.Stdout); err != nil {
		log.Fatal(err)
	}
	if report.Err() != nil {
		os.Exit(1)
	}
}
