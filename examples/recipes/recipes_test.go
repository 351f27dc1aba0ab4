package recipes

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/stub"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/pressly/goose/v3"
	"github.com/robfig/cron/v3"
	_ "modernc.org/sqlite"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

func newClient(t *testing.T, store *memlock.Driver) *interlock.Client {
	t.Helper()
	c, err := interlock.New(store.Share(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// The page has the recipes as they are here.
func TestThePageHasWhatIsTestedHere(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 3 {
		t.Errorf("the page has %d pieces of Go, want those of cron, goose and golang-migrate", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(code.String(), b[1]) {
			t.Errorf("this stands on the page alone:\n%s", b[1])
		}
	}
}

// Three machines, whose clocks differ by up to two seconds, run a job of no time each minute: it runs once a minute.
func TestCron_AJobRunsOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		runs := 0
		for late := range 3 {
			client := newClient(t, store)
			time.AfterFunc(time.Duration(late)*time.Second, func() {
				c := cron.New()
				c.Schedule(cron.Every(time.Minute), once(t.Context(), client, "report", 10*time.Second, func(ctx context.Context) error {
					runs++ // under the lock
					if interlock.Fence(ctx, "report") == 0 {
						t.Error("no token in the context")
					}
					return nil
				}))
				c.Start()
				time.AfterFunc(59*time.Minute+30*time.Second, func() { <-c.Stop().Done() })
			})
		}
		time.Sleep(time.Hour)
		if runs != 59 {
			t.Errorf("%d runs in 59 minutes", runs)
		}
	})
}

// Four machines start at once on one database.
func TestGoose_EachMigrationRunsOnce(t *testing.T) {
	t.Parallel()
	store, file := memlock.New(), filepath.Join(t.TempDir(), "shop.db")
	var all sync.WaitGroup
	for range 4 {
		client, provider := newClient(t, store), newProvider(t, file)
		all.Go(func() {
			if err := gooseUp(t.Context(), client, provider); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if v, err := newProvider(t, file).GetDBVersion(t.Context()); v != 2 || err != nil {
		t.Errorf("the database has version %d, %v", v, err)
	}
}

func TestGoose_ALossEndsTheMigration(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	begun := make(chan struct{})
	provider := newProvider(t, filepath.Join(t.TempDir(), "shop.db"), goose.WithGoMigrations(
		goose.NewGoMigration(3, &goose.GoFunc{RunTx: func(ctx context.Context, _ *sql.Tx) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		}}, nil)))
	done := make(chan error, 1)
	client := newClient(t, store)
	go func() { done <- gooseUp(t.Context(), client, provider) }()
	<-begun
	store.Lose("migrations/shop")
	if err := <-done; !errors.Is(err, interlock.ErrLost) {
		t.Errorf("%v, want the loss", err)
	}
	if v, err := provider.GetDBVersion(t.Context()); v != 2 || err != nil {
		t.Errorf("the database has version %d, %v: want that before the migration that was lost", v, err)
	}
}

func newProvider(t *testing.T, file string, o ...goose.ProviderOption) *goose.Provider {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p, err := goose.NewProvider(goose.DialectSQLite3, db, fstest.MapFS{
		"1_coupons.sql": {Data: []byte("-- +goose Up\nCREATE TABLE coupons (id INTEGER);\n")},
		"2_orders.sql":  {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n")},
	}, o...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Four machines start at once on one database, which golang-migrate locks for nobody else: it has no time for another to wait.
func TestMigrate_EachMigrationRunsOnce(t *testing.T) {
	t.Parallel()
	store, db := memlock.New(), newStub(t)
	var all sync.WaitGroup
	for range 4 {
		client, files := newClient(t, store), newFiles(t)
		all.Go(func() {
			if err := migrateUp(t.Context(), client, files, db); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if !db.EqualSequence([]string{"CREATE TABLE coupons", "CREATE TABLE orders"}) || db.CurrentVersion != 2 || db.IsDirty {
		t.Errorf("migrations %q, version %d", db.MigrationSequence, db.CurrentVersion)
	}
}

// losing loses the lock when a migration has run.
type losing struct {
	database.Driver
	store *memlock.Driver
	runs  atomic.Int32
}

func (d *losing) Run(migration io.Reader) error {
	err := d.Driver.Run(migration)
	if d.runs.Add(1) == 1 {
		d.store.Lose("migrations/shop")
	}
	return err
}

func TestMigrate_AfterALossNoMigrationBegins(t *testing.T) {
	t.Parallel()
	store, db := memlock.New(), newStub(t)
	err := migrateUp(t.Context(), newClient(t, store), newFiles(t), &losing{Driver: db, store: store})
	if !errors.Is(err, interlock.ErrLost) {
		t.Errorf("%v, want the loss", err)
	}
	if !db.EqualSequence([]string{"CREATE TABLE coupons"}) || db.CurrentVersion != 1 || db.IsDirty {
		t.Errorf("migrations %q, version %d, dirty %v: want the first alone, whole", db.MigrationSequence, db.CurrentVersion, db.IsDirty)
	}
	if err := migrateUp(t.Context(), newClient(t, store), newFiles(t), db); err != nil || db.CurrentVersion != 2 {
		t.Errorf("the next goes on with version %d, %v", db.CurrentVersion, err)
	}
}

func newStub(t *testing.T) *stub.Stub {
	t.Helper()
	d, err := stub.WithInstance(nil, &stub.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*stub.Stub)
}

func newFiles(t *testing.T) source.Driver {
	t.Helper()
	d, err := iofs.New(fstest.MapFS{
		"1_coupons.up.sql": {Data: []byte("CREATE TABLE coupons")},
		"2_orders.up.sql":  {Data: []byte("CREATE TABLE orders")},
	}, ".")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
