//go:build linux || darwin

package torture

import (
	"context"
	"database/sql"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Increments of a number under a lock that a transaction takes, while workers are killed and stopped, backends are ended and the
// server is killed: the number is that of the commits that were acknowledged, and at most those more of which nobody knows. The last
// token in the table is smaller than each that comes after.
func TestStormOfTransactions(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	for _, at := range []struct{ start, way string }{{Postgres, byRow}, {Postgres, byAdvisory}, {MariaDB, byRow}} {
		t.Run(at.start+"/"+at.way, func(t *testing.T) {
			n, acknowledged, doubtful := transactions(t, at.start, job{Tx: at.way}, stormLength(t))
			if n < acknowledged || n > acknowledged+doubtful || acknowledged == 0 {
				t.Errorf("the number is %d after %d commits that were acknowledged and %d of which nobody knows", n, acknowledged, doubtful)
			}
		})
	}
}

// Transactions without a lock lose updates in such a storm: what the others show is due to the lock.
func TestStormOfTransactionsWithoutALock(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	for _, start := range []string{Postgres, MariaDB} {
		t.Run(start, func(t *testing.T) {
			n, acknowledged, _ := transactions(t, start, job{Tx: byRow, Guard: unlocked}, 3*time.Second)
			if n >= acknowledged {
				t.Errorf("the storm was not judged: the number is %d after %d commits, and without a lock nothing was lost", n, acknowledged)
			}
		})
	}
}

// transactions runs workers that add 1 to a number in transactions, and returns the number, and how many commits were acknowledged
// and of how many nobody knows.
func transactions(t *testing.T, start string, j job, length time.Duration) (n, acknowledged, doubtful int64) {
	t.Helper()
	ctx := t.Context()
	cfg, err := Config{Start: start, Faults: []string{FaultPause, FaultRestart, FaultTerminate}, TTL: 300 * time.Millisecond, Grace: 100 * time.Millisecond, Seed: 1}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	servers, err := raise(ctx, cfg.Start, cfg.Faults)
	if err != nil {
		t.Fatal(err)
	}
	defer servers.close()
	for _, statement := range []string{"create table torture (n bigint, token bigint)", "insert into torture values (0, 0)"} {
		if _, err := answer(ctx, servers, statement); err != nil {
			t.Fatal(err)
		}
	}
	c := &conductor{Config: cfg, out: progress{t}, dir: t.TempDir(), id: "test", servers: servers}
	dir, names, files, err := c.place(1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "board")
	b, err := openBoard(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	const workers, each = 6, 2
	p := plan{label: "transactions", processes: workers, kills: 2, stops: true, harm: harm{server: cfg.Faults}}
	jobs := make([]job, workers)
	for i := range jobs {
		jobs[i] = j
		jobs[i].Task, jobs[i].Store, jobs[i].TTL, jobs[i].Names, jobs[i].Files, jobs[i].Board = "transactions", servers.url(), cfg.TTL, names, files, path
		jobs[i].Count, jobs[i].First, jobs[i].Hold = each, i*each, time.Millisecond
	}
	team, err := newTeam(dir, jobs)
	if err != nil {
		t.Fatal(err)
	}
	defer team.disband()
	if err := team.await(ctx); err != nil {
		t.Fatal(err)
	}
	b.schedule(length)
	began := now()
	team.begin(began.add(length))
	done, err := c.rage(ctx, team, p, c.havoc(p), nil, began, began.add(length))
	if err != nil {
		t.Fatal(err)
	}
	team.finish(now().add(time.Minute))
	for _, err := range team.errors {
		t.Error(err)
	}
	for i := range workers * each {
		acknowledged, doubtful = acknowledged+b.seats[i].entered.Load(), doubtful+b.seats[i].lost.Load()
	}
	text, err := answer(ctx, servers, "select n from torture")
	if err != nil {
		t.Fatal(err)
	}
	if n, err = strconv.ParseInt(text, 10, 64); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d: %d acknowledged, %d doubtful, %d kills, %d stops, %v", n, acknowledged, doubtful, team.kills, team.stops, done)
	return n, acknowledged, doubtful
}

// answer makes a statement at the database, and returns the first field of its answer, if there is one.
func answer(ctx context.Context, s *servers, statement string) (text string, err error) {
	if s.mariadb == nil {
		return ask(ctx, s.postgres.primary, statement)
	}
	err = atMariaDB(s.mariadb, "root", func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, statement)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(&text); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return text, err
}
