package doctor

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// fold puts together what is the same on several servers: where a check is well on all it is one
// finding, and else what is wrong is one finding for each thing that is, with the servers that have
// it.
func fold(found []driver.Finding) []driver.Finding {
	folded := []driver.Finding{}
	same := func(f driver.Finding) func(driver.Finding) bool {
		return func(g driver.Finding) bool {
			well := f.Level == driver.LevelOK && g.Level == driver.LevelOK && g.Server != ""
			server := g.Server
			g.Server = f.Server
			return f.Title == g.Title && (well || f == g) && server != ""
		}
	}
	worst := map[string]driver.Level{}
	servers := map[string]int{}
	for _, f := range found {
		worst[f.Title] = max(worst[f.Title], f.Level)
		servers[f.Title]++
	}
	for _, f := range found {
		if f.Server == "" {
			folded = append(folded, f)
			continue
		}
		if f.Level == driver.LevelOK && worst[f.Title] > driver.LevelOK {
			continue
		}
		if i := slices.IndexFunc(folded, same(f)); i >= 0 {
			folded[i].Server += ", " + f.Server
			continue
		}
		folded = append(folded, f)
	}
	for i, f := range folded {
		if n := strings.Count(f.Server, ", ") + 1; n > 1 && n == servers[f.Title] {
			folded[i].Server = "all"
		}
	}
	return folded
}
