package main

import (
	"bufio"
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// Two shops over one ledger and one store of locks sell three coupons, and end when they are told to.
func TestShops(t *testing.T) {
	dir := t.TempDir()
	sells(t, filepath.Join(dir, "ledger.db"), "file:"+filepath.Join(dir, "locks"))
}

func TestShopsOnPostgres(t *testing.T) {
	s := servertest.Postgres(t)
	pool, err := pgxpool.New(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pglock.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	sells(t, s.URL(), s.URL())
}

func sells(t *testing.T, ledger, locks string) {
	t.Helper()
	said, words := io.Pipe()
	log.SetOutput(words)
	defer log.SetOutput(os.Stderr)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opened := make(chan string, 2)
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if _, url, found := strings.Cut(lines.Text(), "open: "); found {
				opened <- url
			}
		}
	}()
	ended := make(chan error, 2)
	var urls []string
	for range 2 {
		go func() {
			ended <- run(ctx, []string{
				"-addr", "127.0.0.1:0", "-db", ledger, "-locks", locks, "-stock", "3",
			})
		}()
		select {
		case url := <-opened:
			urls = append(urls, url)
		case err := <-ended:
			t.Fatal(err)
		}
	}
	for i, want := range []int{200, 200, 200, 410, 410} {
		res, err := http.Post(urls[i%2]+"/buy?buyer=ann", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("buyer %d got %d, want %d", i+1, res.StatusCode, want)
		}
	}
	cancel()
	for range urls {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestRunSaysWhatCannotBe(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		`guard "luck": want none, lock or fence`: {"-guard", "luck"},
		`unknown scheme "nosuch"`:                {"-locks", "nosuch:x"},
		"open the ledger":                        {"-db", filepath.Join(dir, "no", "such", "folder")},
	} {
		args = append([]string{"-db", filepath.Join(dir, "ledger.db"), "-locks", "file:" + filepath.Join(dir, "locks")}, args...)
		if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %s", args, err, want)
		}
	}
}
