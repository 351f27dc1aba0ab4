package stage

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/examples/coupons/shop"
)

// place is where the ledger is: in the database that keeps the locks, if that is a PostgreSQL, and else in a file.
type place struct {
	Path   string
	URL    string
	Schema string // of this play alone
}

func newPlace(store, dir string) place {
	scheme, _, _ := strings.Cut(store, ":")
	if scheme == "postgres" || scheme == "postgresql" {
		return place{URL: store, Schema: fmt.Sprintf("interlock_demo_%x", driver.NewID()[:10])}
	}
	return place{Path: filepath.Join(dir, "ledger.db")}
}

func (p place) String() string {
	if p.URL == "" {
		return "SQLite"
	}
	return "PostgreSQL"
}

func (p place) open(ctx context.Context) (*shop.Ledger, error) {
	if p.URL == "" {
		return shop.OpenLedger(ctx, p.Path)
	}
	return shop.OpenPostgresLedger(ctx, p.URL, p.Schema)
}

// clear removes what the play has left in a database, also one that was broken off. A file goes with its folder.
func (p place) clear(ctx context.Context, l *shop.Ledger) error {
	if p.URL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := l.Remove(ctx); err != nil {
		return fmt.Errorf("stage: schema %s is left over: drop it: %w", p.Schema, err)
	}
	return nil
}
