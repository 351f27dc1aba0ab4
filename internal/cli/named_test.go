package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// A page that tells people to type something of interlock tells them of a command and of flags that
// there are: torture and demo, for two, are of interlock-lab.
func TestPagesNameWhatThereIs(t *testing.T) {
	parser, err := newParser(&commandLine{}, terminal{out: io.Discard, err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	const root = "../.."
	pages := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range typed(string(text)) {
			seen++
			if wrong := unknownWord(parser.Model, line); wrong != "" {
				t.Errorf("%s: interlock has no %s: interlock %s", strings.TrimPrefix(page, root+"/"), wrong, line)
			}
		}
	}
	if seen < 80 {
		t.Errorf("%d lines were found, want all that pages have", seen)
	}
	for line, want := range map[string]string{
		"torture --store URL":                     "command torture",
		"run --nice job":                          "flag --nice of run",
		"run --try --json -E 3 job -- tar --nice": "",
		"--store file:x ls --json":                "",
		"--nice":                                  "flag --nice",
	} {
		if got := unknownWord(parser.Model, line); got != want {
			t.Errorf("interlock %s: %q is unknown, want %q", line, got, want)
		}
	}
}

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```")
	inlineCode = regexp.MustCompile("`interlock ([^`]+)`")
	inShell    = regexp.MustCompile(`(?m)(?:^|[ /=(])interlock ((?:run|elect|[a-z]+|--)[^#|;\n]*)`)
)

// typed returns what stands behind interlock where a page shows what to type.
func typed(page string) (lines []string) {
	for _, m := range inlineCode.FindAllStringSubmatch(page, -1) {
		lines = append(lines, m[1])
	}
	for _, block := range codeBlock.FindAllStringSubmatch(page, -1) {
		if !slices.Contains([]string{"", "sh", "crontab", "ini"}, block[1]) {
			continue
		}
		for line := range strings.Lines(block[2]) {
			line, _, _ = strings.Cut(line, "#")
			for _, m := range inShell.FindAllStringSubmatch(line, -1) {
				lines = append(lines, m[1])
			}
		}
	}
	return lines
}

// unknownWord returns the command or the flag of a line that interlock does not have, or "".
func unknownWord(model *kong.Application, line string) string {
	node, flags, of := model.Node, model.Flags, ""
	value := false
	for _, w := range strings.Fields(line) {
		name, _, assigned := strings.Cut(w, "=")
		switch {
		case value:
			value = false
		case w == "--":
			return ""
		case strings.HasPrefix(w, "-") && len(w) > 1:
			i := 0
			for ; i < len(flags); i++ {
				if f := flags[i]; name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
					break
				}
			}
			if i == len(flags) {
				return "flag " + name + of
			}
			value = !flags[i].IsBool() && !assigned
		case node == model.Node:
			var command *kong.Node
			for _, c := range node.Children {
				if c.Name == w && !c.Hidden {
					command = c
				}
			}
			if command == nil {
				return "command " + w
			}
			node, flags, of = command, append(flags[:len(flags):len(flags)], command.Flags...), " of "+w
		}
	}
	return ""
}
