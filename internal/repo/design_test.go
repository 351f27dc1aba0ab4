package repo

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cell is the first one of a table's row, and quoted a name in it.
var (
	cell   = regexp.MustCompile("(?m)^\\| ([^|]*`[^|]*) \\|")
	quoted = regexp.MustCompile("`([^`]+)`")
)

// The page of the design has every package of the module and every module beside it, and nothing that is gone.
func TestDesignListsEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, packages, _ := strings.Cut(string(text), "\n## Packages\n")
	packages, _, _ = strings.Cut(packages, "\n## ")
	listed := map[string]bool{}
	for _, row := range cell.FindAllStringSubmatch(packages, -1) {
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			folder := name[1]
			if listed[folder] {
				t.Errorf("docs/design.md has %s twice", folder)
			}
			if listed[folder] = true; folder == "interlock" {
				continue
			}
			if info, err := os.Stat(filepath.Join(root, folder)); err != nil || !info.IsDir() {
				t.Errorf("docs/design.md has a package %s, which is not there", folder)
			}
		}
	}
	there := map[string]bool{}
	for _, p := range list(t, "./...") {
		if folder := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"); own(p.ImportPath) && folder != "" {
			there[folder] = true
		}
	}
	for file := range strings.FieldsSeq(string(command(t, nil, "git", "ls-files", "*go.mod"))) {
		there[path.Dir(file)] = true
	}
	for folder := range there {
		if folder != "." && !strings.Contains(folder, "mutant/testdata") && !strings.Contains(packages, "`"+folder+"`") {
			t.Errorf("docs/design.md has no line for %s in its table of packages", folder)
		}
	}
}
