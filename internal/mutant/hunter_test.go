package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const seeded = "testdata/seeded"

func bugsOf(t *testing.T, root string) []*bug {
	t.Helper()
	bugs, err := readBugs(root)
	if err != nil {
		t.Fatal(err)
	}
	return bugs
}

// One hunt over a module in which every kind of end is known beforehand.
func TestHunt_TellsConvictionFromEscape(t *testing.T) {
	var out strings.Builder
	h := hunter{root: seeded, limit: 2 * time.Second, parallel: 2, out: &out}
	escaped, err := h.run(t.Context(), bugsOf(t, seeded))
	if err == nil || !strings.Contains(err.Error(), "2 tests were tried twice") {
		t.Errorf("the hunt: %v, want that two tests were tried twice", err)
	}
	if escaped != 7 {
		t.Errorf("%d bugs escaped, want 7", escaped)
	}
	for id, want := range map[string]string{
		"A1":       "lock TestAdd$\n",
		"one-line": "lock TestOne\n",
		"label":    "lock TestLarger\n",
		"import":   "lock TestSet\n",
		"value":    "lock TestSet\n",
		"embedded": "lock TestWords\n",
		"module":   "other TestTwice\n",
		"A2":       "the test passes with the bug",
		"A3":       "the test timed out with the bug: want it to notice by itself",
		"A4":       "crashed with the bug: want its test to fail",
		"A5":       "ended without a failed test",
		"A6":       `the test fails for another reason than "Add\\(2, 2\\) = 5"`,
		"A7":       `no test matches "TestNothing"`,
		"A8":       "the test fails without the bug",
	} {
		if line := lineOf(out.String(), id); !strings.Contains(line, want) {
			t.Errorf("%s: %q does not contain %q", id, line, want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func lineOf(out, id string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "convicted ") && strings.Contains(line, " "+id+" ") {
			return line
		}
	}
	return ""
}

// What cannot be applied is refused before anything is compiled, with the file, the line and the bug.
func TestHunt_RefusesWrongTables(t *testing.T) {
	const head = "bug A1\ntest TestAdd$\nfails Add\nsays It subtracts.\n"
	for name, c := range map[string]struct{ table, want string }{
		"the old text is missing": {head + "in lock.go\n-\treturn a * b\n+\treturn a\n", "a.bugs:5: bug A1: the old text is not in lock.go"},
		"the old text is twice there": {
			head + "in lock.go\n-\t}\n+\t} // end\n",
			"a.bugs:5: bug A1: the old text is 2 times in lock.go, the second time at line ",
		},
		"nothing changes":       {head + "in lock.go\n \treturn a + b\n", "a.bugs:5: bug A1: it changes nothing"},
		"no old text":           {head + "in lock.go\n+\treturn a\n", "a.bugs:5: bug A1: no old text"},
		"no edit":               {head, "a.bugs:1: bug A1 changes nothing"},
		"no such file":          {head + "in luck.go\n-a\n+b\n", "a.bugs:5: bug A1: open "},
		"a test":                {head + "in lock_test.go\n-a\n+b\n", "a.bugs:5: bug A1: lock_test.go is a test"},
		"no message":            {"bug A1\ntest TestAdd$\nsays Nothing.\nin lock.go\n-a\n+b\n", `a.bugs:1: bug A1 has no line "fails"`},
		"any letter":            {"bug A1\ntest TestAdd$\nfails .\nsays Nothing.\nin lock.go\n-a\n+b\n", `a.bugs:1: bug A1: fails: "." matches any failure`},
		"any message":           {"bug A1\ntest TestAdd$\nfails .*\nsays Nothing.\nin lock.go\n-a\n+b\n", `a.bugs:1: bug A1: fails: ".*" matches nothing at all`},
		"no pattern":            {"bug A1\ntest Test(\nfails x\nsays Nothing.\nin lock.go\n-a\n+b\n", "a.bugs:1: bug A1: test: error parsing regexp"},
		"two sentences":         {"bug A1\ntest T\nfails x\nsays One.\nsays Two.\nin lock.go\n-a\n+b\n", `a.bugs:1: bug A1 has 2 lines "says", want one`},
		"a field of no bug":     {"bug A1\ntext T\n", "a.bugs:2: bug A1: \"text T\": want one of the fields"},
		"twice the same id":     {head + "in lock.go\n-\treturn a + b\n+\treturn a\n\n" + head + "in lock.go\n-\treturn a + b\n+\treturn a\n", "a.bugs:9: bug A1 stands at "},
		"no record":             {"in lock.go\n", "a.bugs:1: \"in lock.go\": want a record"},
		"another signature":     {head + "in lock.go\n-func Add(a, b int) int {\n+func Add(b, a int) int {\n", "a.bugs:1: bug A1: lock.go: the bug changes what Add takes or returns"},
		"another type":          {head + "in lock.go\n-type Pair struct{ A, B int }\n+type Pair struct{ A, B, C int }\n", "a.bugs:1: bug A1: lock.go: the bug changes the declaration"},
		"a function taken away": {head + "in lock.go\n-func One() int { return 1 }\n", "a.bugs:1: bug A1: lock.go: the bug takes away func One"},
		"a type of a variable":  {head + "in lock.go\n-var limit = 3\n+var limit int8 = 3\n", "a.bugs:1: bug A1: lock.go: the bug changes the declaration"},
		"several of one call":   {head + "in lock.go\n-var one, two = pair()\n+var one, two = pair2()\n", "a.bugs:1: bug A1: lock.go: the bug changes the declaration"},
		"a constant by place":   {head + "in lock.go\n+\t_ = iota\n \tfirst = iota\n", "a.bugs:1: bug A1: lock.go: the bug changes the declaration"},
		"a method of a type":    {head + "in lock.go\n func One() int { return 1 }\n+func (p *Pair) String() string { return \"\" }\n", "a.bugs:1: bug A1: lock.go: the bug adds the method String to the type Pair"},
		"a new init":            {head + "in lock.go\n func One() int { return 1 }\n+func init() { limit = 4 }\n", "a.bugs:1: bug A1: lock.go: the bug adds func \" init()"},
		"an import for effects": {head + "in lock.go\n \t\"fmt\"\n+\t_ \"io\"\n", "a.bugs:1: bug A1: lock.go: the bug adds import \"_"},
		"a comment":             {head + "in lock.go\n-// Add returns the sum.\n+// Add adds.\n", "a.bugs:1: bug A1: lock.go: the bug changes nothing that is compiled"},
		"another system":        {head + "in lock_plan9.go\n-var a = 1\n+var a = 2\n", "a.bugs:1: bug A1: lock_plan9.go is not compiled here"},
		"an edit of an edit":    {head + "in lock.go\n-var limit = 3\n+var limit = 4\n@@\n-var limit = 4\n+var limit = 5\n", "a.bugs:8: bug A1: the old text is not in lock.go"},
		"edits that overlap":    {head + "in lock.go\n-var limit = 3\n+var limit = 4\n@@\n var limit = 3\n \n+var a int\n", "a.bugs:8: bug A1: it overlaps with the edit at "},
		"no Go":                 {head + "in lock.go\n-\treturn a + b\n+\treturn a +\n", "a.bugs:1: bug A1: lock.go: as the bug changes it: "},
		"a text of nobody's":    {head + "in other.txt\n-nobody\n+somebody\n", "a.bugs:1: bug A1: other.txt is no Go file and embedded in none of the Go files beside it"},
	} {
		t.Run(name, func(t *testing.T) {
			root := copyOf(t, c.table)
			bugs, err := readBugs(root)
			if err == nil {
				_, err = seed(root, t.TempDir(), bugs)
			}
			if err == nil || !strings.Contains(err.Error(), filepath.Join("bugs", c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A bug that does not compile is named by the compiler.
func TestHunt_NamesWhatDoesNotCompile(t *testing.T) {
	root := copyOf(t, "bug A1\ntest TestAdd$\nfails Add\nsays It returns what is not there.\nin lock.go\n-\treturn a + b\n+\treturn c\n")
	h := hunter{root: root, limit: time.Second, parallel: 1, out: &strings.Builder{}}
	if _, err := h.run(t.Context(), bugsOf(t, root)); err == nil || !strings.Contains(err.Error(), "lock.go[A1]:28:9: undefined: c") {
		t.Errorf("%v, want the place in the file as the bug changes it", err)
	}
}

// copyOf returns a module like the one in testdata, with another table.
func copyOf(t *testing.T, table string) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.CopyFS(root, os.DirFS(seeded)); err != nil {
		t.Fatal(err)
	}
	bugs := filepath.Join(root, "lock", "testdata", "bugs")
	for file, text := range map[string]string{
		filepath.Join(bugs, "lock.bugs"):             "",
		filepath.Join(bugs, "a.bugs"):                table,
		filepath.Join(root, "lock", "other.txt"):     "nobody\n",
		filepath.Join(root, "lock", "lock_plan9.go"): "package lock\n\nvar a = 1\n",
		filepath.Join(root, "lock", "program.go"):    "//go:build ignore\n\npackage main\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRun_FailsAsACommand(t *testing.T) {
	args := func(more ...string) []string {
		return append([]string{"-root", seeded, "-rows", "rows", "-race=false"}, more...)
	}
	for _, c := range []struct {
		args []string
		want string // "" for none
	}{
		{args("-list"), ""},
		{args("-id", "A1"), ""},
		{args("-id", "A2"), "1 of 1 bugs NOT convicted"},
		{args("-id", "Z1"), `no bug and no row "Z1"`},
		{args("-pkg", "./lock/", "-id", "A1"), ""},
		{args("-pkg", "./other"), ""},
		{args("-pkg", ".", "-id", "A1"), "no bug in .: want a folder"},
		{args("A1"), `unexpected argument "A1"`},
	} {
		err := run(context.Background(), c.args)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}
