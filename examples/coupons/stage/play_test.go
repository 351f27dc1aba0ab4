package stage_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/examples/coupons/shop"
	"github.com/interlock-go/interlock/examples/coupons/stage"
	_ "github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
	_ "github.com/interlock-go/interlock/redislock"
)

// The test binary is also the shops' program.
const shopVariable = "COUPONS_TEST_SHOP"

func TestMain(m *testing.M) {
	if os.Getenv(shopVariable) == "" {
		os.Exit(m.Run())
	}
	if err := stage.RunShop(context.Background(), cast(os.Stdin), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cast gives a shop another role than it was given, if it is to be miscast.
func cast(in io.Reader) io.Reader {
	if os.Getenv(shopVariable) != "miscast" {
		return in
	}
	r := bufio.NewReader(in)
	role, err := r.ReadString('\n')
	if err != nil {
		return r
	}
	role = strings.NewReplacer(`"Guard":"none"`, `"Guard":"lock"`, `"Guard":"fence"`, `"Guard":"lock"`).Replace(role)
	return io.MultiReader(strings.NewReader(role), r)
}

func command() *exec.Cmd { return as("1") }

func as(cast string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), shopVariable+"="+cast, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestPlay(t *testing.T) { play(t, "") }

func TestPlayOnRedis(t *testing.T) { play(t, servertest.Redis(t).URL()) }

// In a PostgreSQL the ledger lies beside the locks, and is gone afterwards.
func TestPlayOnPostgres(t *testing.T) {
	for _, technique := range []string{"rows&fence_base=1000000000000000", "session"} {
		t.Run(technique, func(t *testing.T) {
			t.Parallel()
			s := servertest.Postgres(t)
			pool := migrated(t, s)
			play(t, s.URL()+"&technique="+technique)
			if n := schemas(t, pool); n != 0 {
				t.Errorf("%d schemas of the demo are left", n)
			}
		})
	}
}

// What the role may not do is said, and so is that there are no tables; nothing is left in either case.
func TestPlayOnPostgresThatIsNotReady(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	config := stage.Config{Store: s.URL(), Coupons: 8, Command: command}
	if _, err := stage.Run(t.Context(), config); !errors.Is(err, stage.ErrStore) || !strings.Contains(err.Error(), "interlock migrate") {
		t.Errorf("without tables: %v", err)
	}
	pool := migrated(t, s)
	if _, err := pool.Exec(t.Context(), `create role app login password 'hush';
		grant usage on schema interlock to app;
		grant select, insert, update, delete on all tables in schema interlock to app`); err != nil {
		t.Fatal(err)
	}
	config.Store = strings.Replace(s.URL(), "postgres@", "app:hush@", 1)
	if _, err := stage.Run(t.Context(), config); !errors.Is(err, stage.ErrStore) || !strings.Contains(err.Error(), "want a role with CREATE on the database") || strings.Contains(err.Error(), "hush") {
		t.Errorf("without the right to make a schema: %v", err)
	}
	if n := schemas(t, pool); n != 0 {
		t.Errorf("%d schemas of the demo are left", n)
	}
}

// A play that is broken off leaves nothing either.
func TestPlayOnPostgresThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	pool := migrated(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := stage.Run(ctx, stage.Config{Store: s.URL(), Coupons: 8, Command: command, Progress: func(line string) {
		if strings.Contains(line, "is stopped") {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if n := schemas(t, pool); n != 0 {
		t.Errorf("%d schemas of the demo are left", n)
	}
}

func migrated(t *testing.T, s *servertest.Server) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := pglock.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	return pool
}

func schemas(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "select count(*) from pg_namespace where nspname like 'interlock_demo%'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func play(t *testing.T, store string) {
	t.Helper()
	r, err := stage.Run(t.Context(), stage.Config{
		Store: store, Servers: 3, Coupons: 24, Command: command, Progress: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if len(r.Acts) != 4 {
		t.Fatalf("%d acts, want 4", len(r.Acts))
	}
	for i, guard := range []shop.Guard{shop.None, shop.Lock, shop.Lock, shop.Fence} {
		a := r.Acts[i]
		t.Log(a.Story())
		if a.Guard != guard || a.Stock != 24 {
			t.Errorf("act %d: guard %s, stock %d", a.Number, a.Guard, a.Stock)
		}
		if right := i%2 == 1; right != (a.Account == shop.Account{Stock: 24, Sold: 24}) || right != (a.Oversold == 0) {
			t.Errorf("act %d: %+v, oversold %d", a.Number, a.Account, a.Oversold)
		}
		if (a.Stop != nil) != (i >= 2) {
			t.Fatalf("act %d: stop %v", a.Number, a.Stop)
		}
	}
	for _, a := range r.Acts[2:] {
		s := a.Stop
		if s.Shop != "shop 1" || s.By == "" || s.By == s.Shop || s.Token == 0 || s.Overtaken <= s.Stopped ||
			s.Continued < s.Overtaken || s.Ended < s.Continued || s.Meanwhile != s.Number {
			t.Errorf("act %d: %+v", a.Number, s)
		}
	}
	if late := r.Acts[2].Stop; !late.Written || late.Status != 500 || !strings.Contains(late.Answer, "lost") {
		t.Errorf("the late write under the lock: %+v", late)
	}
	if late := r.Acts[3].Stop; late.Written || late.Status != 503 || !strings.Contains(late.Answer, "is stale") {
		t.Errorf("the late write with a token: %+v", late)
	}
	if text, err := json.Marshal(r); err != nil || !strings.Contains(string(text), `"must_oversell":true,"stock":24`) {
		t.Errorf("%s, error %v", text, err)
	}
	checkChart(t, r)
}

// checkChart parses the chart as XML and counts what must be in it.
func checkChart(t *testing.T, r *stage.Report) {
	t.Helper()
	var texts []string
	rects := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(r.SVG())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			for _, a := range token.Attr {
				if a.Name.Local == "class" && (token.Name.Local == "rect" || token.Name.Local == "path") {
					rects[a.Value]++
				}
			}
		case xml.CharData:
			texts = append(texts, string(token))
		}
	}
	// In bars and legend: four and one, two and one. In time lines: 24 sales in each, of which the stopped one is a
	// sale too many, and drawn as a sale that was there until it was stopped.
	sold := r.Acts[2].Sold + 24
	if got, want := rects["good"]+rects["bad"], 4+2+2+sold+1; got != want {
		t.Errorf("%d coupons are drawn, want %d", got, want)
	}
	if rects["lane"] != 2*3 || rects["stopped"] != 2+1 || rects["refused"] != 1+1 {
		t.Errorf("elements %v: want 6 lanes, and 2 stops and 1 refusal besides the legend's", rects)
	}
	for _, want := range []string{
		"24 coupons, 96 buyers, 3 shops", "there are 24", "2  a lock", fmt.Sprintf("%d sold, %d too many", r.Acts[0].Sold, r.Acts[0].Oversold),
		"24 sold, late write refused", "its lease is over: " + r.Acts[3].Stop.By + " goes on", "its late write is refused",
		fmt.Sprintf("late write: “%d left”", r.Acts[2].Stop.Number-1), "late write refused", "What a lock is for, and a token",
	} {
		if !slices.Contains(texts, want) {
			t.Errorf("the chart does not say %q", want)
		}
	}
}

// A play whose first act does not go wrong, and whose last one does, says so: it believes the database, not the program.
func TestPlayThatShowsNothing(t *testing.T) {
	r, err := stage.Run(t.Context(), stage.Config{
		Servers: 2, Coupons: 8, TTL: time.Second, Command: func() *exec.Cmd { return as("miscast") },
	})
	if err != nil {
		t.Fatal(err)
	}
	if first := r.Acts[0]; first.Tries != 3 || len(first.Missing) != 1 || !strings.Contains(first.Missing[0], "8 coupons were sold of 8, not too many") {
		t.Errorf("the first act: %d tries, missing %q", first.Tries, first.Missing)
	}
	if last := r.Acts[3]; last.Tries != 1 || !slices.Contains(last.Missing, "the late write was accepted") || last.Oversold == 0 {
		t.Errorf("the last act: %d tries, missing %q", last.Tries, last.Missing)
	}
	if err := r.Err(); !errors.Is(err, stage.ErrNotShown) || !strings.Contains(err.Error(), "act 1: ") || !strings.Contains(err.Error(), "act 4: ") {
		t.Errorf("error %v, want %v in the acts 1 and 4", err, stage.ErrNotShown)
	}
}

func TestRunRefusesWhatCannotBe(t *testing.T) {
	for want, c := range map[string]stage.Config{
		"1 servers: want 2":                    {Servers: 1},
		"7 coupons: want 8":                    {Coupons: 7},
		"19 buyers of 10 coupons: want twice":  {Coupons: 10, Buyers: 19},
		"TTL of 1ms: want 200ms to 1m":         {TTL: time.Millisecond},
		"want Config.Command":                  {},
		"shop 1 ended":                         {Command: func() *exec.Cmd { return exec.Command("false") }},
		"start shop 1":                         {Command: func() *exec.Cmd { return exec.Command("/no/such/program") }},
		`unknown scheme "nosuch"`:              {Store: "nosuch:", Command: command},
		"want one that they share":             {Store: "mem:shared"},
		"act 1, no lock: stage: shop 1 ended:": {Command: func() *exec.Cmd { return exec.Command("true") }},
	} {
		if c.Command == nil && want != "want Config.Command" {
			c.Command = command
		}
		_, err := stage.Run(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := stage.Run(ctx, stage.Config{Coupons: 8, Command: command, Progress: func(line string) {
		if strings.Contains(line, "is stopped") {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
