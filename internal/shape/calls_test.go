package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What a free lock calls of the core. The aim is 40 calls in 8 files; what it is now may only
// shrink.
const (
	mostCalls = 54
	mostFiles = 19
)

// To read how a free lock is taken takes so many files of the core, and so many calls of its
// functions.
func TestCallsOfAFreeLock(t *testing.T) {
	const module = "github.com/interlock-go/interlock"
	core := []string{module}
	for _, p := range []string{"local", "keepalive", "fault", "clock", "lazyctx", "report"} {
		core = append(core, module+"/internal/"+p)
	}
	dir := t.TempDir()
	command(t, "go", "build", "-cover", "-covermode=atomic", "-coverpkg=./testdata/freelock,"+strings.Join(core, ","), "-o", dir+"/freelock", "./testdata/freelock")
	counters := dir + "/counters"
	if err := os.Mkdir(counters, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, dir+"/freelock", counters)
	command(t, "go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+dir+"/profile")
	profile, err := os.ReadFile(dir + "/profile")
	if err != nil {
		t.Fatal(err)
	}
	calls, files := 0, map[string][]string{}
	for _, block := range regexp.MustCompile(`(?m)^(\S+)/([^/]+\.go):(\d+)\.(\d+),\S+ \d+ (\d+)$`).FindAllStringSubmatch(string(profile), -1) {
		n, _ := strconv.Atoi(block[5])
		n /= 100 // locks; what is called less often is the session's
		if n == 0 || !slices.Contains(core, block[1]) {
			continue
		}
		path := strings.TrimPrefix(strings.TrimPrefix(block[1], module)+"/"+block[2], "/")
		line, _ := strconv.Atoi(block[3])
		if name := functionAt(t, filepath.Join("../..", path), line); name != "" {
			calls += n
			files[path] = append(files[path], fmt.Sprintf("%s %d", name, n))
		}
	}
	t.Logf("%d calls in %d files: %v", calls, len(files), files)
	if calls > mostCalls || len(files) > mostFiles {
		t.Errorf("a free lock makes %d calls in %d files of the core, want %d and %d at most: %v", calls, len(files), mostCalls, mostFiles, files)
	}
	if calls < 10 {
		t.Error("the calls are not counted")
	}
}

// functionAt returns the name of the function whose body begins at the line of a file, or "".
func functionAt(t *testing.T, path string, line int) string {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && set.Position(fn.Body.Pos()).Line == line {
			return fn.Name.Name
		}
	}
	return ""
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
