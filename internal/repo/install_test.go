package repo

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// installs returns the commands of README's section Install, block by block, and the version that they name.
func installs(t *testing.T, dir string) (blocks []string, version string) {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, dir, "README.md"), "\n## Install\n")
	section, _, ok := strings.Cut(rest, "\n## ")
	if !ok {
		t.Fatal("README has no section Install")
	}
	for _, m := range fenced.FindAllStringSubmatch(section, -1) {
		if m[1] == "sh" {
			blocks = append(blocks, m[2])
		}
	}
	versions := regexp.MustCompile(`v\d+\.\d+\.\d+`).FindAllString(section, -1)
	if slices.Sort(versions); len(versions) == 0 || versions[0] != versions[len(versions)-1] {
		t.Fatalf("Install names the versions %q, want one", versions)
	}
	return blocks, versions[0]
}

// What README tells to install is the last release of the changelog, by commands that TestInstall runs, and files are called as
// .ci/release calls them.
func TestInstallIsOfTheLastRelease(t *testing.T) {
	blocks, version := installs(t, root)
	last := regexp.MustCompile(`(?m)^## \[(\d.*)\] - \d{4}-\d\d-\d\d$`).FindStringSubmatch(read(t, root, "CHANGELOG.md"))
	if last == nil || "v"+last[1] != version {
		t.Errorf("README installs %s, and the last release in the changelog is %q", version, last)
	}
	name := "interlock_" + version[1:]
	known := regexp.MustCompile(`^(` + strings.Join([]string{
		`go install ` + module + `/cmd/interlock@` + version,
		`go get ` + module + `@` + version,
		`curl -fLO https://` + module + `/releases/download/` + version + `/(` + name + `_amd64\.deb|` + name + `_linux_amd64\.tar\.gz|SHA256SUMS)`,
		`sudo apt install \./` + name + `_amd64\.deb`,
		`sha256sum --check --ignore-missing SHA256SUMS`,
		`tar -xzf ` + name + `_linux_amd64\.tar\.gz`,
		`sudo install ` + name + `_linux_amd64/interlock /usr/local/bin/`,
	}, "|") + `)$`)
	lines := strings.Split(strings.TrimSpace(strings.Join(blocks, "")), "\n")
	for _, line := range lines {
		if !known.MatchString(line) {
			t.Errorf("README says %q, which TestInstall does not know", line)
		}
	}
	if len(lines) < 9 {
		t.Errorf("Install has %d commands, want those of go install, a package, an archive and the library", len(lines))
	}
}
