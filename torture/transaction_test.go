//go:build linux || darwin

package torture

import (
	"context"
	"database/sql"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/interlock-go/interlock/internal/workers"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/mysqllock"
	"github.com/interlock-go/interlock/torture/internal/servers"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// Increments of a number under a lock that a transaction takes, while workers are killed and
// stopped, backends are ended and the server is killed: the number is that of the commits that were
// acknowledged, and at most those more of which nobody knows. The last token in the table is
// smaller than each that comes after.
func TestStormOfTransactions(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	for _, at := range []struct{ start, way string }{{Postgres, worker.ByRow}, {Postgres, worker.ByAdvisory}, {MariaDB, worker.ByRow}} {
		t.Run(at.start+"/"+at.way, func(t *testing.T) {
			n, acknowledged, doubtful := transactions(t, at.start, worker.Job{Tx: at.way}, stormLength(t))
			if n < acknowledged || n > acknowledged+doubtful || acknowledged == 0 {
				t.Errorf("the number is %d after %d commits that were acknowledged and %d of which nobody knows", n, acknowledged, doubtful)
			}
		})
	}
}

// Transactions without a lock lose updates in such a storm: what the others show is due to the
// lock.
func TestStormOfTransactionsWithoutALock(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	for _, start := range []string{Postgres, MariaDB} {
		t.Run(start, func(t *testing.T) {
			n, acknowledged, _ := transactions(t, start, worker.Job{Tx: worker.ByRow, Guard: worker.Unlocked}, 3*time.Second)
			if n >= acknowledged {
				t.Errorf("the storm was not judged: the number is %d after %d commits, and without a lock nothing was lost", n, acknowledged)
			}
		})
	}
}

// transactions runs workers that add 1 to a number in transactions, and returns the number, and how
// many commits were acknowledged and of how many nobody knows.
func transactions(t *testing.T, start string, j worker.Job, length time.Duration) (n, acknowledged, doubtful int64) {
	t.Helper()
	ctx := t.Context()
	cfg, err := Config{Start: start, Faults: []string{FaultPause, FaultRestart, FaultTerminate}, TTL: 300 * time.Millisecond, Grace: 100 * time.Millisecond, Seed: 1}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	started, err := servers.Start(ctx, cfg.Start, cfg.Faults)
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	for _, statement := range []string{"create table torture (n bigint, token bigint)", "insert into torture values (0, 0)"} {
		if _, err := answer(ctx, started.URL(), statement); err != nil {
			t.Fatal(err)
		}
	}
	c := &conductor{Config: cfg, out: progress{t}, dir: t.TempDir(), id: "test", servers: started}
	dir, names, files, err := c.place(1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "board")
	b, err := workers.OpenBoard(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const workers, each = 6, 2
	p := plan{label: "transactions", processes: workers, kills: 2, stops: true, harm: harm{server: cfg.Faults}}
	jobs := make([]worker.Job, workers)
	for i := range jobs {
		jobs[i] = j
		jobs[i].Task, jobs[i].Store, jobs[i].TTL, jobs[i].Names, jobs[i].Files, jobs[i].Board = "transactions", started.URL(), cfg.TTL, names, files, path
		jobs[i].Count, jobs[i].First, jobs[i].Hold = each, i*each, time.Millisecond
	}
	team, err := worker.NewTeam(dir, jobs)
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	if err := team.Await(ctx); err != nil {
		t.Fatal(err)
	}
	b.Schedule(monotonic.Now(), length)
	f := faultsOf(c, team, p, nil)
	f.began = monotonic.Now()
	f.end = f.began.Add(length)
	team.Begin(f.end)
	if err := f.inject(ctx); err != nil {
		t.Fatal(err)
	}
	team.Finish(monotonic.Now().Add(time.Minute))
	for _, err := range team.Errors {
		t.Error(err)
	}
	for i := range workers * each {
		acknowledged, doubtful = acknowledged+b.Seats[i].Entered.Load(), doubtful+b.Seats[i].Lost.Load()
	}
	text, err := answer(ctx, started.URL(), "select n from torture")
	if err != nil {
		t.Fatal(err)
	}
	if n, err = strconv.ParseInt(text, 10, 64); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d: %d acknowledged, %d doubtful, %d kills, %d stops, %v", n, acknowledged, doubtful, team.Kills, team.Stops, f.servers.Count)
	return n, acknowledged, doubtful
}

// answer makes a statement at the database of a store, and returns the first field of its answer,
// if there is one.
func answer(ctx context.Context, store, statement string) (text string, err error) {
	db, err := openDatabase(store)
	if err != nil {
		return "", err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return "", err
		}
	}
	return text, rows.Err()
}

func openDatabase(store string) (*sql.DB, error) {
	if !strings.HasPrefix(store, "mysql:") {
		return sql.Open("pgx", store)
	}
	c, _, err := mysqllock.ParseURL(store)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
