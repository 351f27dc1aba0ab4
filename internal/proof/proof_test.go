//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// What go test -json says, and what is to be concluded.
func TestVerdictOfEvents(t *testing.T) {
	const passes = `
		{"Action":"run","Package":"m/p","Test":"TestA"}
		{"Action":"run","Package":"m/p","Test":"TestA/one"}
		{"Action":"output","Package":"m/p","Test":"TestA/one","Output":"    a_test.go:1: void: too late\n"}
		{"Action":"pass","Package":"m/p","Test":"TestA/one"}
		{"Action":"run","Package":"m/p","Test":"TestA/two"}
		{"Action":"pass","Package":"m/p","Test":"TestA/two"}
		{"Action":"pass","Package":"m/p","Test":"TestA"}
		{"Action":"run","Package":"m/p","Test":"TestB"}
		{"Action":"pass","Package":"m/p","Test":"TestB"}`
	const fails = `
		{"Action":"run","Package":"m/p","Test":"TestC"}
		{"Action":"run","Package":"m/p","Test":"TestC/deep"}
		{"Action":"output","Package":"m/p","Test":"TestC/deep","Output":"=== RUN   TestC/deep\n"}
		{"Action":"output","Package":"m/p","Test":"TestC/deep","Output":"    c_test.go:9: two hold\n"}
		{"Action":"fail","Package":"m/p","Test":"TestC/deep"}
		{"Action":"output","Package":"m/p","Test":"TestC","Output":"--- FAIL: TestC (0.00s)\n"}
		{"Action":"fail","Package":"m/p","Test":"TestC"}
		{"Action":"output","Package":"m/p","Output":"FAIL\n"}
		{"Action":"fail","Package":"m/p"}`
	const unable = `
		{"Action":"run","Package":"m/p","Test":"TestD"}
		{"Action":"output","Package":"m/p","Test":"TestD","Output":"    run.go:65: Law04 was not judged: the machine was too slow\n"}
		{"Action":"fail","Package":"m/p","Test":"TestD"}
		{"Action":"fail","Package":"m/p"}`
	const hangs = `
		{"Action":"run","Package":"m/p","Test":"TestE"}
		{"Action":"output","Package":"m/p","Test":"TestE","Output":"panic: test timed out after 20m0s\n"}
		{"Action":"fail","Package":"m/p","Test":"TestE"}
		{"Action":"fail","Package":"m/p"}`
	const builds = `
		{"ImportPath":"m/p [m/p.test]","Action":"build-output","Output":"# m/p\n"}
		{"ImportPath":"m/p [m/p.test]","Action":"build-output","Output":"p/p.go:3: undefined: x\n"}
		{"ImportPath":"m/p [m/p.test]","Action":"build-fail"}
		{"Action":"output","Package":"m/p","Output":"FAIL\tm/p [build failed]\n"}
		{"Action":"fail","Package":"m/p"}`
	const finds = `
		{"Action":"run","Package":"m/p","Test":"TestF"}
		{"Action":"output","Package":"m/p","Test":"TestF","Output":"    f_test.go:1: two hold at once\n"}
		{"Action":"output","Package":"m/p","Test":"TestF","Output":"    f_test.go:2: Law04 was not judged: slow\n"}
		{"Action":"fail","Package":"m/p","Test":"TestF"}`
	const void = `
		{"Action":"run","Package":"m/p","Test":"TestG"}
		{"Action":"output","Package":"m/p","Test":"TestG","Output":"    g_test.go:1: void: B was let in while A held it\n"}
		{"Action":"output","Package":"m/p","Test":"TestG","Output":"    g_test.go:2: Law04 was not judged: slow\n"}
		{"Action":"fail","Package":"m/p","Test":"TestG"}`
	const parent = `
		{"Action":"run","Package":"m/p","Test":"TestH"}
		{"Action":"run","Package":"m/p","Test":"TestH/a"}
		{"Action":"output","Package":"m/p","Test":"TestH/a","Output":"    h.go:3: Law04 was not judged: slow\n"}
		{"Action":"fail","Package":"m/p","Test":"TestH/a"}
		{"Action":"output","Package":"m/p","Test":"TestH","Output":"    h_test.go:9: two hold at once\n"}
		{"Action":"fail","Package":"m/p","Test":"TestH"}`
	const race = `
		{"Action":"output","Package":"m/p","Output":"WARNING: DATA RACE\n"}
		{"Action":"fail","Package":"m/p"}`
	const late = `
		{"Action":"run","Package":"m/p","Test":"TestI"}
		{"Action":"output","Package":"m/p","Test":"TestI","Output":"WARN interlock: lease lost name=report\n"}
		{"Action":"output","Package":"m/p","Test":"TestI","Output":"==================\n"}
		{"Action":"output","Package":"m/p","Test":"TestI","Output":"WARNING: DATA RACE\n"}
		{"Action":"fail","Package":"m/p","Test":"TestI"}`
	status := errors.New("exit status 1")
	for name, c := range map[string]struct {
		events  string
		err     error
		patient bool
		want    verdict
		cases   int
		why     []string
	}{
		"all pass":                  {passes, nil, false, held, 3, nil},
		"a subtest fails":           {passes + fails, status, false, broken, 4, []string{"TestC/deep: c_test.go:9: two hold"}},
		"one could not be judged":   {passes + unable, status, false, notJudged, 4, []string{"TestD: run.go:65: Law04 was not judged: the machine was too slow"}},
		"one of each":               {unable + fails, status, false, broken, 2, []string{"TestD: run.go:65: Law04 was not judged: the machine was too slow", "TestC/deep: c_test.go:9: two hold"}},
		"hangs":                     {passes + hangs, status, false, broken, 4, []string{"TestE: panic: test timed out after 20m0s"}},
		"is slow on a slow machine": {passes + hangs, status, true, notJudged, 4, []string{"TestE: panic: test timed out after 20m0s"}},
		"does not compile":          {builds, status, false, broken, 0, []string{"m/p [m/p.test]: p/p.go:3: undefined: x"}},
		"ends without a word":       {passes, status, false, broken, 3, []string{"exit status 1"}},
		"is ended, being slow":      {passes, errSlow, false, notJudged, 3, []string{"not done in 20m0s"}},
		"found something before":    {passes + finds, status, false, broken, 4, []string{"TestF: f_test.go:1: two hold at once"}},
		"void is no finding":        {passes + void, status, false, notJudged, 4, []string{"TestG: g_test.go:1: void: B was let in while A held it"}},
		"a parent found something":  {passes + parent, status, false, broken, 4, []string{"TestH/a: h.go:3: Law04 was not judged: slow", "TestH: h_test.go:9: two hold at once"}},
		"a race beside it":          {passes + unable + race, status, false, broken, 4, []string{"TestD: run.go:65: Law04 was not judged: the machine was too slow", "m/p: WARNING: DATA RACE"}},
		"a race behind its log":     {passes + late, status, false, broken, 4, []string{"TestI: WARNING: DATA RACE"}},
		"no test":                   {"", nil, false, notJudged, 0, []string{"it has no cases"}},
	} {
		t.Run(name, func(t *testing.T) {
			sum := newTally(io.Discard)
			for line := range strings.Lines(c.events) {
				if line = strings.TrimSpace(line); line != "" {
					sum.event([]byte(line))
				}
			}
			r := sum.result(c.err, c.patient)
			if r.verdict != c.want || r.cases != c.cases || !slices.Equal(r.why, c.why) {
				t.Errorf("%s, %d cases, %q; want %s, %d, %q", r.verdict, r.cases, r.why, c.want, c.cases, c.why)
			}
		})
	}
}

// What is no test is counted by its lines, and ends with what it said last.
func TestVerdictOfCommands(t *testing.T) {
	for name, c := range map[string]struct {
		p    part
		want result
	}{
		"convicts":      {part{run: []string{"echo", "54 of 54 bugs convicted in 3.0s, 0 tried twice"}, cases: bugsConvicted}, result{verdict: held, cases: 54}},
		"holds":         {part{run: []string{"printf", `claim -DX 12 1s  holds\nclaim -DY 12 1s  asserts\n`}, cases: modelVariant}, result{verdict: held, cases: 2}},
		"fuzzes":        {part{run: []string{"printf", `fuzz: elapsed: 3s, execs: 10 (3/sec), new interesting: 1 (total: 5)\nfuzz: elapsed: 6s, execs: 25 (5/sec), new interesting: 1 (total: 5)\nPASS\n`}, cases: inputs}, result{verdict: held, cases: 25}},
		"fails":         {part{run: []string{"sh", "-c", "echo no; exit 3"}, cases: packageOK}, result{verdict: broken, why: []string{"no; exit status 3"}}},
		"cannot be run": {part{run: []string{"./nothing"}, cases: packageOK}, result{verdict: broken, why: []string{"fork/exec ./nothing: no such file or directory"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.rounds = 1
			r := c.p.prove(t.Context(), io.Discard)
			if r.verdict != c.want.verdict || r.cases != c.want.cases || !slices.Equal(r.why, c.want.why) {
				t.Errorf("%+v, want %+v", r, c.want)
			}
		})
	}
}

// What a part had in memory is looked at, and too much is broken: also of a process of its own that has ended.
func TestMemoryOfAPart(t *testing.T) {
	p := part{run: []string{"sh", "-c", "head -c 67108864 /dev/zero | tail -c 67108864 > /dev/null; true"}, events: true}
	sum := newTally(io.Discard)
	if err := p.once(t.Context(), sum, time.Minute); err != nil {
		t.Fatal(err)
	}
	if sum.peak < 64<<20 || sum.peak > mostMemory {
		t.Errorf("a process that kept 64 MiB had %d", sum.peak)
	}
	sum = newTally(io.Discard)
	sum.event([]byte(`{"Action":"pass","Package":"m/p","Test":"TestA"}`))
	sum.peak = mostMemory + 5<<20
	if r := sum.result(nil, false); r.verdict != broken || !slices.Equal(r.why, []string{"a process of it had 1029 MiB in memory, want 1024 at most"}) {
		t.Errorf("%s, %q; want it broken for its memory", r.verdict, r.why)
	}
}

// A second proof in the same clone would overwrite the page of the first.
func TestAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("docs", 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := alone()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alone(); err == nil || !strings.Contains(err.Error(), "want one at a time") {
		t.Errorf("a second one: %v, want it refused", err)
	}
	unlock()
	unlock, err = alone()
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	unlock()
}

// What changed while a part ran was not proved.
func TestCommitOf(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"abc", "abc", "abc"}, {"abc", "abc+", "abc+"}, {"abc", "def", "abc+"}, {"abc+", "abc+", "abc+"}, {"abc+", "abc", "abc+"},
	} {
		if got := (here{commit: c.before}).commitOf(here{commit: c.after}); got != c.want {
			t.Errorf("from %s to %s: %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

// A part of several rounds ends with the first that fails.
func TestRounds(t *testing.T) {
	rounds := filepath.Join(t.TempDir(), "rounds")
	p := part{run: []string{"sh", "-c", `echo ok >> "$1"; cat "$1"; test "$(wc -l < "$1")" -lt 3`, "sh", rounds}, cases: packageOK, rounds: 20}
	if r := p.prove(t.Context(), io.Discard); r.verdict != broken {
		t.Errorf("%+v, want broken", r)
	}
	if text, err := os.ReadFile(rounds); err != nil || strings.Count(string(text), "ok") != 3 {
		t.Errorf("%q, %v, want three rounds", text, err)
	}
}

// The page is its own record: what was written is read.
func TestPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proof.md")
	p, err := readPage(path)
	if err != nil {
		t.Fatal(err)
	}
	p.keep([]part{{name: "./a"}, {name: "./a on a slow machine"}, {name: "models"}})
	p.rows["./a"] = row{Verdict: held, Cases: 12, Took: 62 * time.Second, Date: "2026-11-24", Commit: "abc123456", Machine: "2 cores, x", Command: "make proof PKG=./a"}
	p.rows["models"] = row{Verdict: broken, Cases: 1, Took: time.Second, Date: "2026-11-25", Commit: "abc123456+", Machine: "2 cores", Command: "make models", Why: []string{"TestX: a\nb", "TestY: - c", strings.Repeat("wörd ", 60), strings.Repeat("x", 2*widest)}}
	want := p.String()
	if err := p.write(path); err != nil {
		t.Fatal(err)
	}
	q, err := readPage(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := q.String(); got != want {
		t.Errorf("read and written again:\n%s\nwant:\n%s", got, want)
	}
	if !strings.Contains(want, "| ./a on a slow machine | never run |") || !strings.Contains(want, "| models | **broken** |") {
		t.Errorf("the page is\n%s", want)
	}
	if n := len(q.rows["models"].Why); n != 4 {
		t.Errorf("%d reasons were read, want 4: %q", n, q.rows["models"].Why)
	}
	for line := range strings.Lines(want) {
		if utf8.RuneCountInString(line) > widest+1 && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "- xxx") {
			t.Errorf("more than %d columns: %s", widest, line)
		}
	}
	q.keep([]part{{name: "./b"}})
	if len(q.rows) != 1 || len(q.order) != 1 || q.rows["./b"].Verdict != "" {
		t.Errorf("after all parts but one have gone: %+v", q)
	}
	if err := os.WriteFile(path, []byte("# mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPage(path); err == nil || !strings.Contains(err.Error(), "want what make proof wrote") {
		t.Errorf("a page of somebody else: %v", err)
	}
}

// The page of this repository is what the command writes, whoever else has written in it: else the next run could not read it.
func TestThePageOfThisRepository(t *testing.T) {
	const path = "../../docs/proof.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPage(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(p.String(), "\n")
	for i, line := range strings.Split(string(text), "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("%s:%d is not what make proof writes: %s", path, i+1, line)
		}
	}
}

// Every package with tests has a part, and what is of no package comes last.
func TestEveryPackageHasAPart(t *testing.T) {
	t.Chdir("../..")
	all, err := list(t.Context(), `interlock/memlock$`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	for _, want := range []string{"., 20 times", "./redlock", "./redlock on a slow machine", "./memlock, 20 times", "./web, FuzzName", "./internal/serve, FuzzRequest", "seeded bugs of .", "models", "bench"} {
		if want == "., 20 times" {
			want = "." // not among the bubbles of this test
		}
		if !slices.Contains(names, want) {
			t.Errorf("no part %q in %q", want, names)
		}
	}
	some, err := choose(t.Context(), all, []string{"./redlock", "./fence/..."})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range some {
		if !strings.Contains(p.name, "./redlock") && !strings.Contains(p.name, "./fence") {
			t.Errorf("%s is a part of redlock or fence", p.name)
		}
	}
	if len(some) < 4 {
		t.Errorf("%d parts of redlock and fence, want 4 at least", len(some))
	}
	one, err := choose(t.Context(), all, []string{"./redlock on a slow machine", "seeded bugs of ."})
	if err != nil || len(one) != 2 {
		t.Errorf("two parts by their names: %v, %v", one, err)
	}
	for _, name := range []string{"contrib/gocron", "./contrib/gocron", "contrib/gocron/"} {
		beside, err := choose(t.Context(), all, []string{name})
		if err != nil || len(beside) != 2 || beside[0].name != "contrib/gocron" || beside[1].name != "seeded bugs of ./contrib/gocron" {
			t.Errorf("%s, a module beside this one: %v, %v, want its tests and its bugs", name, beside, err)
		}
	}
	if _, err := choose(t.Context(), all, []string{"./redlock/flawless"}); err == nil {
		t.Error("a package that is not there has a part")
	}
}

// A part that held is not run again while the sources are the same, whatever the page says: it is no source.
func TestSameSources(t *testing.T) {
	t.Chdir(t.TempDir())
	commit := func(file, text string) here {
		t.Helper()
		for _, args := range [][]string{
			{"init", "-q"},
			{"add", "-A"},
			{"-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm", "c"},
		} {
			if args[0] == "add" {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := exec.CommandContext(context.Background(), "git", args...).CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
		h, err := present(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := commit("a.go", "package a")
	paged := commit(pageFile, "page")
	if !paged.sameSources(t.Context(), first.commit) {
		t.Error("the page counts as a source")
	}
	if err := os.WriteFile("b.go", []byte("package a"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed, err := present(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(changed.commit, "+") || changed.sameSources(t.Context(), first.commit) {
		t.Errorf("with a file that is not committed: %+v, and its sources are those of before", changed)
	}
	if later := commit("b.go", "package a"); later.sameSources(t.Context(), first.commit) || later.sameSources(t.Context(), "") {
		t.Error("the sources count as those of before")
	}
}
