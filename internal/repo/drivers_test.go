package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver/drivertest"
)

// Whoever writes a driver finds each law on the page, with what it wants and how it is usually broken.
func TestPageForDriversHasEveryLaw(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "writing-a-driver.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) == 3 && cells[1] != "" && cells[2] != "" {
			rows[strings.Trim(cells[0], "`")] = true
		}
	}
	for _, law := range drivertest.Laws() {
		if !rows[law.Name] {
			t.Errorf("docs/writing-a-driver.md has no row for %s with what it wants and how it is broken: %s", law.Name, law.Says)
		}
	}
}
