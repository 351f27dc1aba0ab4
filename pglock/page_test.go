package pglock_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/pglock"
)

// The rights that each section of the backend's page gives are enough for what the section is
// about, and that alone is what a role has here.
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
