package mysqllock_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The rights that each section of the backend's page gives are enough for what the section is
// about, and they alone are what a user has here.
func TestRightsOfThePage(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	text, err := os.ReadFile("../docs/backends/mysql.md")
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
		name := fmt.Sprintf("app%d", i)
		execute(t, s, "create user "+name)
		for grant := range strings.Lines(strings.ReplaceAll(grants[1], "shop.", "test.")) {
			execute(t, s, strings.Replace(strings.TrimSuffix(grant, ";\n"), " to app", " to "+name, 1))
		}
		url := strings.Replace(s.URL(), "root@", name+"@", 1)
		switch title {
		case "The tables":
			cycle(t, user(t, url), user(t, url))
		case "In a transaction of the program":
			if turn(t, pool(t, url), "rights") == 0 {
				t.Error("no token in a transaction")
			}
		case "Technique session":
			cycle(t, user(t, url+"?technique=session"), user(t, url+"?technique=session"))
		case "Technique rowlock":
			cycle(t, user(t, url+"?technique=rowlock"), user(t, url+"?technique=rowlock"))
		default:
			t.Errorf("rights in section %q, of which nothing is known here", title)
		}
	}
	if tested != 4 {
		t.Errorf("%d sections have rights, want 4", tested)
	}
}
