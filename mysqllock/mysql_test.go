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

// elsewhere is a server that somebody else runs, at an address.
type elsewhere string

func (e elsewhere) Addr() string                { return string(e) }
func (elsewhere) Restart(context.Context) error { panic("it is not ours") }

// visitor is a harness on a server that somebody else runs: all that another one is but a
// Restarter.
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

// The suite on a server that runs already: a real MySQL, by make proof-mysql
// URL=mysql://root@127.0.0.1:3306/test. Without one it is a MariaDB, so that this is known to work.
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
	drivertest.Run(t, func(*testing.T) drivertest.Harness { return visitor{newHarness(elsewhere(u.Host), u.String())} })
}
