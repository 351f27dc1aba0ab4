package mysqllock_test

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"testing"

	"github.com/interlock-go/interlock/driver/drivertest"
	"github.com/interlock-go/interlock/mysqllock"
)

// place is a server as a harness needs it: one that was started here, or another one.
type place interface {
	URL() string
	Addr() string
	Restart(ctx context.Context) error
}

// elsewhere is a server that somebody else runs, by the store's URL.
type elsewhere struct{ at *url.URL }

func (e elsewhere) URL() string                   { return e.at.String() }
func (e elsewhere) Addr() string                  { return e.at.Host }
func (e elsewhere) Restart(context.Context) error { panic("it is not ours") }

// visitor is a harness on a server that somebody else runs: all that another one is but a Restarter.
type visitor struct{ stays }

type stays interface {
	drivertest.Harness
	drivertest.Killer
	drivertest.Staller
	drivertest.Straggler
	drivertest.Ender
	drivertest.Counter
	drivertest.Freezer
}

// Cannot implements drivertest.Abstainer.
func (visitor) Cannot(string) string { return "the server is somebody else's, and is not restarted" }

// The suite on a server that runs already: a real MySQL, by make proof-mysql URL=mysql://root@127.0.0.1:3306/test. Without one it is a MariaDB, so
// that this is known to work.
func TestConformanceElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite once more: make proof, or make proof-mysql URL=mysql://USER@HOST:PORT/DATABASE")
	}
	text := os.Getenv("INTERLOCK_MYSQL")
	u, err := url.Parse(cmp.Or(text, migrated(t).URL()))
	if err != nil || u.Port() == "" {
		t.Fatalf("the server's URL: want mysql://USER@HOST:PORT/DATABASE")
	}
	db := pool(t, u.String())
	if err := mysqllock.Migrate(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	var version string
	if err := db.QueryRowContext(t.Context(), "select version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	t.Log(version)
	h := &harness{server: elsewhere{u}}
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return visitor{h.again()} })
}
