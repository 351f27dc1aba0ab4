package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		cells int
		want  []string
	}{
		{"", 20, []string{""}},
		{"the lock is free", 20, []string{"the lock is free"}},
		{"the lock is free", 9, []string{"the lock", "is free"}},
		{"注文 番号 job", 9, []string{"注文 番号", "job"}},
		{"see https://example.org/a/long/page for more", 20, []string{"see", "https://example.org/a/long/page", "for more"}},
	} {
		if got := wrap(c.text, c.cells); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d cells: %q, want %q", c.text, c.cells, got, c.want)
		}
	}
}

// On a terminal an error takes no more than its width, and a URL in it stays whole: it can be
// copied, and opened by a click. Logs and scripts get one line.
func TestErrorsFitATerminal(t *testing.T) {
	t.Parallel()
	url := "https://github.com/interlock-go/interlock/blob/main/docs/backends/" + strings.Repeat("long/", 10) + "page.md"
	message := "the store cannot be used: " + strings.Repeat("the reason goes on and on ", 6) + "as on " + url + " and more"
	for _, columns := range []int{0, 60, 80, 132} {
		var out bytes.Buffer
		terminal{err: &out, errColumns: columns}.say("%s", message)
		said := strings.TrimSuffix(out.String(), "\n")
		if strings.ReplaceAll(said, "\n", " ") != "interlock: "+message {
			t.Errorf("of %d columns: it says %q, want all of it", columns, said)
		}
		rows := strings.Split(said, "\n")
		if columns == 0 {
			if len(rows) != 1 {
				t.Errorf("no terminal, and %d lines, want one:\n%s", len(rows), said)
			}
			continue
		}
		for _, row := range rows {
			if width(row) > columns && row != url {
				t.Errorf("%d cells where %d are: %s", width(row), columns, row)
			}
		}
		if columns < width(url) && !slices.Contains(rows, url) {
			t.Errorf("of %d columns: the URL is not whole:\n%s", columns, said)
		}
	}
}

// A report of the doctor breaks no URL, neither that of the store nor one in what is to be done.
func TestDoctor_WholeURLs(t *testing.T) {
	t.Parallel()
	store := "redlock://" + strings.Repeat("redis-1.example.org:6379,", 5) + "redis-9.example.org:6379"
	page := "https://github.com/interlock-go/interlock/blob/main/docs/failures.md#" + strings.Repeat("a-long-anchor", 4)
	r := &interlock.Report{Guarantee: "not known", Findings: []interlock.Finding{
		{Title: "set", Level: driver.LevelBad, Seen: "x", Why: "y", Mend: "as the page says, " + page + " in its second part"},
	}}
	var out bytes.Buffer
	printReport(terminal{out: &out, columns: 80}, store, r, true)
	for _, want := range []string{store + "\n", " " + page + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q whole in\n%s", want, out.String())
		}
	}
}
