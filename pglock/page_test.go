package pglock_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/pglock"
)

// The rights that each section of the backend's page gives are enough for what the section is about, and that alone is what a role has here.
func TestRightsOfThePage(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	text, err := os.ReadFile("../docs/backends/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	sql := regexp.MustCompile("(?ms)^```sql\n(.*?)^```")
	tested := 0
	for i, section := range strings.Split(string(text), "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		grants := sql.FindStringSubmatch(section)
		if grants == nil {
			continue
		}
		tested++
		role := fmt.Sprintf("app%d", i)
		execute(t, s, "create role "+role+" login; "+strings.ReplaceAll(grants[1], " to app;", " to "+role+";"))
		url := strings.Replace(s.URL(), "postgres@", role+"@", 1)
		switch title {
		case "The tables":
			cycle(t, url)
		case "In a transaction of the program":
			err := pgx.BeginFunc(t.Context(), pool(t, url), func(tx pgx.Tx) error {
				token, err := pglock.InTx(t.Context(), tx, "rights", nil)
				if err == nil && token == 0 {
					t.Error("no token in a transaction")
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		case "Technique session":
			cycle(t, url+"&technique=session")
		case "Technique rowlock":
			cycle(t, url+"&technique=rowlock")
		default:
			t.Errorf("rights in section %q, of which nothing is known here", title)
		}
	}
	if tested != 4 {
		t.Errorf("%d sections have rights, want 4", tested)
	}
}

// Every connection is dialled as the pool dials: with what BeforeConnect has put in, as a password of the hour.
func TestBeforeConnect(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	for _, technique := range []string{"rows", "session", "rowlock"} {
		t.Run(technique, func(t *testing.T) {
			config, err := pgxpool.ParseConfig(strings.Replace(s.URL(), "postgres@", "nobody_yet@", 1))
			if err != nil {
				t.Fatal(err)
			}
			config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
				c.User = "postgres"
				return nil
			}
			p, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			var said bytes.Buffer // a warning, where the connection that listens cannot be made
			d, err := pglock.New(t.Context(), p, &pglock.Options{Technique: technique, Logger: slog.New(slog.NewTextHandler(&said, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := d.Close(context.Background()); err != nil || strings.Contains(said.String(), "nobody can tell them") {
					t.Errorf("closed: %v; said: %s", err, said.String())
				}
			}()
			var both [2]driver.Session
			for i := range both {
				if both[i], err = d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute}); err != nil {
					t.Fatal(err)
				}
			}
			mine, next := mutex("before/"+technique), mutex("before/"+technique)
			asks(t, both[0], mine, true)
			asks(t, both[1], next, false)
			leaves(t, both[0], mine, true)
			awaits(t, both[1], next)
			leaves(t, both[1], next, true)
		})
	}
}
