package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// In this module stands what is easily another thing in a block, in another file, or beside a bug that is off.
const strangeCode = `package lock

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"
)

//go:embed words.txt
var words string

//go:embed words.txt
var again string

var made int

func makes(n int) int { made++; return n }

var size = makes(8)

var limit = 3

var cause error = errors.New("none")

func Fails() (n int, err error) {
	defer func() {
		if err == nil {
			n = -1
		}
	}()
	n = 5
	half, err := n/2, errors.New("odd")
	if half > 100 {
		return
	}
	return
}

func Recovers() (r any) {
outer:
	for {
		for {
			break outer
		}
	}
	return recover()
}

func Two(n int) int {
	if n > 3 {
		return 1
	}
	return 2
}

type Stack[T any] []T

func (s *Stack[T]) Push(v ...T) { *s = append(*s, v...) }

func Where() string {
	_, file, line, _ := runtime.Caller(0)
	return fmt.Sprint(file, ":", line)
}
`

const strangeTests = `package lock

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestMade(t *testing.T) {
	if made != 1 || size != 8 || cause == nil {
		t.Errorf("size %d, made %d, cause %v", size, made, cause)
	}
}

func TestLimit(t *testing.T) {
	if _, ok := any(limit).(int); !ok {
		t.Errorf("limit is a %T", limit)
	}
}

func TestFails(t *testing.T) {
	if n, err := Fails(); n != 5 || err == nil {
		t.Errorf("fails with %d, %v", n, err)
	}
}

func TestRecovers(t *testing.T) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("still panics: %v", r)
		}
	}()
	defer Recovers()
	panic("no")
}

func TestWords(t *testing.T) {
	if words != "hello\n" || again != words {
		t.Errorf("words %q and %q", words, again)
	}
}

func TestPush(t *testing.T) {
	var s Stack[int]
	s.Push(1, 2)
	if len(s) != 2 {
		t.Errorf("pushed %v", s)
	}
}

func TestWhere(t *testing.T) {
	wd, _ := os.Getwd()
	if got, want := Where(), filepath.Join(wd, "lock.go:62"); got != want {
		t.Errorf("at %s, want %s", got, want)
	}
}

func TestTwo(t *testing.T) {
	t.Run("sub", func(*testing.T) {})
	fmt.Println("    printed")
	if n := Two(1); n != 2 {
		t.Errorf("two is %d", n)
	}
}

func TestTwoLogs(t *testing.T) { t.Log("two is logged") }

func TestPrints(t *testing.T) {
	fmt.Println("it printed") 
	fmt.Print("no newline")
	if n := Two(1); n != 2 {
		t.Fail()
	}
}

func TestSkips(t *testing.T) { t.Skip("two") }

func TestExits(t *testing.T) {
	if n := Two(1); n != 2 {
		os.Exit(0)
	}
}
`

func TestHunt_IsExact(t *testing.T) {
	var table, out strings.Builder
	wants := map[string]string{}
	for _, c := range []struct{ id, test, fails, edits, want string }{
		{"value", "TestMade", "size 9", "-var size = makes(8)\n+var size = makes(9)", "convicted "},
		{"nil", "TestMade", "size 8, made 1, cause <nil>", "-var cause error = errors.New(\"none\")\n+var cause error = nil", "convicted "},
		{"untyped", "TestLimit", "limit", "-var limit = 3\n+var limit = 2.5", "crashed with the bug"},
		{"result", "TestFails", "fails with 7, odd", "-\tn = 5\n+\tn = 7", "convicted "},
		{"label", "TestRecovers", "still panics: no", "-\treturn recover()\n+\treturn nil", "convicted "},
		{"label2", "TestRecovers", "still panics: again", "-\treturn recover()\n+\trecover()\n+\tpanic(\"again\")", "convicted "},
		{"embedded", "TestWords", `words "bye\\n" and "bye\\n"`, "", "convicted "},
		{"generic", "TestPush", `pushed \[2\]`, "-func (s *Stack[T]) Push(v ...T) { *s = append(*s, v...) }\n+func (s *Stack[T]) Push(v ...T) { *s = append(*s, v[1:]...) }", "convicted "},
		{"where", "TestWhere", `at /nowhere`, "-\treturn fmt.Sprint(file, \":\", line)\n+\treturn fmt.Sprint(\"/nowhere\", file, \":\", line)", "convicted "},
		{"import", "TestTwo$", "two is 3", " \t\"fmt\"\n+\t\"io\"\n@@\n-\treturn 2\n+\t_ = io.EOF\n+\treturn 3", "convicted "},
		{"import2", "TestTwo$", "two is 4", " \t\"fmt\"\n+\t\"io\"\n@@\n-\treturn 2\n+\t_ = io.EOF\n+\treturn 4", "convicted "},
		{"no-return", "TestTwo$", "two is 2", "-\treturn 2\n+\tn++", "crashed with the bug"},
		{"name", "TestTwo$", "TestTwo", "-\treturn 2\n+\treturn 1", "no test that failed says it"},
		{"logged", "TestTwo", "two is logged", "-\treturn 2\n+\treturn 1", "no test that failed says it"},
		{"printed", "TestPrints", "it printed", "-\treturn 2\n+\treturn 1", "no test that failed says it"},
		{"sub", "TestTwo/none", "two is 1", "-\treturn 2\n+\treturn 1", `no test matches "TestTwo/none"`},
		{"skip", "TestSkips", "two", "-\treturn 2\n+\treturn 1", `the test "TestSkips" is skipped`},
		{"exit", "TestExits", "two", "-\treturn 2\n+\treturn 1", "crashed with the bug"},
	} {
		edits := "in lock.go\n" + c.edits
		if c.edits == "" {
			edits = "in words.txt\n-hello\n+bye"
		}
		table.WriteString("bug " + c.id + "\ntest " + c.test + "\nfails " + c.fails + "\nsays It is so.\n" + edits + "\n\n")
		wants[c.id] = c.want
	}
	root := copyOf(t, table.String())
	for name, text := range map[string]string{"lock.go": strangeCode, "lock_test.go": strangeTests, "words.txt": "hello\n"} {
		if err := os.WriteFile(filepath.Join(root, "lock", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := hunter{root: root, limit: time.Minute, parallel: 2, out: &out}
	if _, err := h.run(t.Context(), bugsOf(t, root)); err != nil {
		t.Fatal(err)
	}
	for id, want := range wants {
		if line := lineOf(out.String(), id); !strings.Contains(line, want) || strings.HasPrefix(want, "convicted") && !strings.HasPrefix(line, want) {
			t.Errorf("%s: %q, want %q", id, line, want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
