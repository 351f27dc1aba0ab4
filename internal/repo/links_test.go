package repo

import (
	"go/format"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	fenced  = regexp.MustCompile("(?ms)^```([a-z]*)[^\n]*\n(.*?)^```")
	inline  = regexp.MustCompile("`[^`\n]*`")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every relative link in a page leads to a file of the repository and to a heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	all := texts(t)
	pages := 0
	for name, text := range all {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		pages++
		prose := inline.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if problem := follow(name, m[1], all, exists); problem != "" {
				t.Errorf("%s: link to %s: %s", name, m[1], problem)
			}
		}
	}
	if pages == 0 {
		t.Error("no pages were found")
	}
}

// follow returns what is wrong with a link on a page. Links to other sites are not followed.
func follow(page, target string, all map[string]string, exists func(string) bool) string {
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if u.IsAbs() || u.Host != "" {
		return ""
	}
	file := page
	if u.Path != "" {
		file = path.Join(path.Dir(page), u.Path)
	}
	if !exists(file) {
		return "there is no " + file
	}
	if u.Fragment == "" || !strings.HasSuffix(file, ".md") {
		return ""
	}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(all[file], ""), -1) {
		if slug(h[1]) == u.Fragment {
			return ""
		}
	}
	return "there is no such heading in " + file
}

func exists(file string) bool {
	_, err := os.Stat(path.Join(root, file))
	return err == nil
}

// slug is the anchor that a heading gets where the pages are shown.
func slug(heading string) string {
	return strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func TestFollow(t *testing.T) {
	all := map[string]string{"README.md": "# Interlock\n\n## What a lock *cannot* do\n", "docs/design.md": "# Design"}
	for target, good := range map[string]bool{
		"https://example.org/x":        true,
		"../LICENSE":                   true,
		"../no-such-file.md":           false,
		"#design":                      true,
		"#another":                     false,
		"../README.md#interlock":       true,
		"../README.md#what-it-can":     false,
		"../LICENSE#not-looked-inside": true,
	} {
		problem := follow("docs/design.md", target, all, func(file string) bool { return file == "LICENSE" || all[file] != "" })
		if (problem == "") != good {
			t.Errorf("%s: %q, want good: %v", target, problem, good)
		}
	}
	if got, want := slug("What a lock *cannot* do"), "what-a-lock-cannot-do"; got != want {
		t.Errorf("slug is %q, want %q", got, want)
	}
}

// Go code on a page is formatted, so that it can be copied as it is. Whether it works is for the examples to show.
func TestCodeOnPagesIsFormatted(t *testing.T) {
	for name, text := range texts(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, m := range fenced.FindAllStringSubmatch(text, -1) {
			if m[1] != "go" {
				continue
			}
			got, err := format.Source([]byte(m[2]))
			if err != nil {
				t.Errorf("%s: %v in\n%s", name, err, m[2])
			} else if string(got) != m[2] {
				t.Errorf("%s: is not as gofmt has it:\n%s", name, m[2])
			}
		}
	}
}
