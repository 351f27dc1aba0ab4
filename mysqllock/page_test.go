package mysqllock_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The rights that the backend's page gives are enough, and they alone are what the user has here.
func TestRightsOfThePage(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	text, err := os.ReadFile("../docs/backends/mysql.md")
	if err != nil {
		t.Fatal(err)
	}
	grants := regexp.MustCompile("(?ms)^```sql\n(.*?)^```").FindStringSubmatch(string(text))
	if grants == nil {
		t.Fatal("the page gives no rights")
	}
	execute(t, s, "create user app")
	for grant := range strings.Lines(strings.ReplaceAll(grants[1], "shop.", "test.")) {
		execute(t, s, strings.TrimSuffix(grant, ";\n"))
	}
	url := strings.Replace(s.URL(), "root@", "app@", 1)
	cycle(t, user(t, url), user(t, url))
}
