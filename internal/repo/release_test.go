package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The package has what .ci/release lays for it, and every unit there is.
func TestPackageHasWhatIsLaid(t *testing.T) {
	script, config := read(t, root, ".ci/release"), read(t, root, "deploy/nfpm.yaml")
	if !strings.Contains(script, "deploy/nfpm.yaml") || !strings.Contains(script, "cp -r deploy/copyright deploy/systemd") {
		t.Fatal(".ci/release does not lay deploy/copyright and deploy/systemd, or makes no package of them")
	}
	packed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  - src: (.*)\n    dst: (.*)$`).FindAllStringSubmatch(config, -1) {
		packed[m[2]] = true
		source, staged := strings.CutPrefix(m[1], "${STAGE}/")
		folder, all := strings.CutSuffix(source, "/*")
		switch {
		case !staged:
			t.Errorf("%s is not of the stage: it has the time that it has here", m[1])
		case all && exists("deploy/"+folder), exists("deploy/" + source), source == "interlock", strings.Contains(script, `"$STAGE/`+source+`"`):
		default:
			t.Errorf(".ci/release does not lay %s", source)
		}
	}
	for _, place := range []string{
		"/usr/bin/interlock", "/usr/share/man/man1/interlock.1.gz", "/usr/lib/systemd/system/", "/usr/share/doc/interlock/copyright", "/usr/share/doc/interlock/licenses.gz",
		"/usr/share/bash-completion/completions/interlock", "/usr/share/zsh/vendor-completions/_interlock", "/usr/share/fish/vendor_completions.d/interlock.fish",
	} {
		if !packed[place] {
			t.Errorf("the package has nothing at %s", place)
		}
	}
}

// Whose it is, is said everywhere in the same words, and nothing is left of a form to fill in or of an address that nobody reads.
func TestAuthorsAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"LICENSE":          "\n   Copyright 2026 The Interlock Authors\n",
		"deploy/copyright": "\nCopyright: 2026 The Interlock Authors\n",
		"deploy/nfpm.yaml": "\nmaintainer: The Interlock Authors <https://" + module + ">\nvendor: The Interlock Authors\n",
	} {
		text := read(t, root, file)
		if !strings.Contains(text, want) {
			t.Errorf("%s does not have %q", file, want)
		}
		if left := regexp.MustCompile(`\[(yyyy|name of copyright owner)\]|noreply`).FindString(text); left != "" {
			t.Errorf("%s has %q", file, left)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
