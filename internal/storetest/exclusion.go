package storetest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Way is a way to lock the name "table".
type Way struct {
	Name string
	Take func(t *testing.T) (held bool, leave func())
	With string // what it excludes
}

// Lease is the way to lock by a driver.
func Lease(url string) func(t *testing.T) (held bool, leave func()) {
	return func(t *testing.T) (bool, func()) {
		t.Helper()
		a, c := User(t, url), Tries("table")
		g, err := a.Acquire(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return g.Held, func() { Leaves(t, a, c, g.Held) }
	}
}

// Exclude tries which way of locking excludes which, and compares that with the table of a backend's page.
func Exclude(t *testing.T, page string, ways []Way) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range ways {
		cells := strings.Split(regexp.MustCompile(`(?m)^\| \*\*\[?`+first.Name+`\b.*$`).FindString(string(text)), "|")
		if len(cells) != 4+len(ways) {
			t.Fatalf("the page has no row for %s", first.Name)
		}
		held, leave := first.Take(t)
		if !held {
			t.Fatalf("%s is not free", first.Name)
		}
		for i, second := range ways {
			excluded := slices.Contains(strings.Split(first.With, ", "), second.Name)
			if says := strings.TrimSpace(cells[2+i]) == "excludes"; says != excluded {
				t.Errorf("the page says of %s and %s: %q", first.Name, second.Name, cells[2+i])
			}
			held, leave := second.Take(t)
			if held == excluded {
				t.Errorf("%s beside %s: held %v", second.Name, first.Name, held)
			}
			leave()
		}
		leave()
	}
}
