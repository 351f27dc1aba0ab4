package repo

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The picture of the core's floors in the design is what the imports say: each floor may need those below it, and what stands on the
// ground, which needs nothing of this module but the contract.
func TestFloorsOfTheCore(t *testing.T) {
	text := read(t, root, "docs/design.md")
	_, text, _ = strings.Cut(text, "\nThe core has floors")
	_, text, _ = strings.Cut(text, "```\n")
	picture, _, _ := strings.Cut(text, "```")
	if !strings.Contains(read(t, root, "CONTRIBUTING.md"), "\n```\n"+picture+"```\n") {
		t.Errorf("CONTRIBUTING.md draws the floors otherwise than the design does, which draws\n%s", picture)
	}
	var floors, ground []string // from above
	beside := ""                // what is on a floor of its own beside them
	inside := regexp.MustCompile(`internal/\w+`)
	for line := range strings.Lines(picture) {
		floor := regexp.MustCompile(`^ (interlock|internal/\w+|driver)\b`).FindStringSubmatch(line)
		switch {
		case floor != nil:
			floors = append(floors, floor[1])
		case strings.Contains(line, "beside:"):
			beside = inside.FindString(line)
		case strings.Contains(line, "on the ground"):
			ground = inside.FindAllString(line, -1)
		}
	}
	if len(floors) != 4 || len(ground) != 4 || beside == "" {
		t.Fatalf("the picture has the floors %q, beside them %q, on the ground %q: want 4, 1 and 4", floors, beside, ground)
	}
	for _, p := range list(t, append([]string{"."}, dotted(slices.Concat(floors[1:], ground, []string{beside}))...)...) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		at := slices.Index(floors, name)
		if name == "" {
			at = 0
		}
		for _, i := range p.Imports {
			to := strings.TrimPrefix(i, module+"/")
			switch {
			case !own(i) || to == "driver":
			case slices.Contains(ground, to):
				if slices.Contains(ground, name) || name == "driver" {
					t.Errorf("%s imports %s, beside it", name, to)
				}
			case to == beside:
				if at != 0 {
					t.Errorf("%s imports %s, which is on no floor below it", name, to)
				}
			case slices.Contains(floors, to):
				if at < 0 || slices.Index(floors, to) <= at {
					t.Errorf("%s imports %s: an arrow upwards", name, to)
				}
			}
		}
	}
}

func dotted(names []string) (paths []string) {
	for _, n := range names {
		paths = append(paths, "./"+n)
	}
	return paths
}
