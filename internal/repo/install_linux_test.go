package repo

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A release is made of a clone at its tag, twice and in two places, and is the same. Then a user does what README says, from a host that
// has the release and a proxy that has the module, and has the version that README names.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tools of a release and a release, twice: make proof")
	}
	_, version := installs(t, root)
	first, second := release(t, version), release(t, version)
	sums := read(t, first, "dist/SHA256SUMS")
	if again := read(t, second, "dist/SHA256SUMS"); again != sums {
		t.Errorf("two releases of one commit differ:\n%s\n%s", sums, again)
	}
	dist := filepath.Join(first, "dist")
	t.Run("checksums", func(t *testing.T) {
		in(t, dist, nil, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
		files, err := os.ReadDir(dist)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Name() != "SHA256SUMS" && !strings.Contains(sums, "  "+f.Name()+"\n") {
				t.Errorf("SHA256SUMS has no %s", f.Name())
			}
		}
	})
	t.Run("modules", func(t *testing.T) { modulesAreListed(t, dist, version) })
	t.Run("lab", func(t *testing.T) {
		name := fmt.Sprintf("interlock-lab_%s_linux_%s", version[1:], runtime.GOARCH)
		dir := t.TempDir()
		in(t, dir, nil, "tar", "-xzf", filepath.Join(dist, name+".tar.gz"))
		if help := in(t, filepath.Join(dir, name), nil, "./interlock-lab", "--help"); !strings.Contains(help, "torture") {
			t.Errorf("interlock-lab --help says %s", help)
		}
		if says := in(t, filepath.Join(dir, name), nil, "./interlock-lab", "--version"); !strings.HasPrefix(says, "interlock-lab "+version+" ") {
			t.Errorf("interlock-lab --version says %q, want %s", says, version)
		}
	})
	blocks, _ := installs(t, first)
	for i, block := range blocks {
		t.Run(fmt.Sprintf("block %d", i+1), func(t *testing.T) { install(t, first, block, version) })
	}
}

// in runs a command in a folder, and returns what it says.
func in(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// release makes a release for this kind of machine in a clone, as at the tag, and returns the clone.
func release(t *testing.T, version string) string {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	in(t, root, nil, "git", "-c", "safe.directory=*", "clone", "--quiet", "--no-tags", top, clone)
	in(t, clone, nil, "git", "-c", "user.name=T", "-c", "user.email=t@example.org", "tag", version)
	in(t, clone, []string{"PLATFORMS=linux/" + runtime.GOARCH}, ".ci/release")
	return clone
}

// modulesAreListed reads what is said to be in the programs.
func modulesAreListed(t *testing.T, dist, version string) {
	t.Helper()
	for _, program := range []string{"interlock", "interlock-lab"} {
		var bom struct {
			BomFormat string
			Metadata  struct {
				Component struct{ Name, Version string }
			}
			Components []struct{ Name, Version string }
		}
		name := fmt.Sprintf("%s_%s_linux_%s.cdx.json", program, version[1:], runtime.GOARCH)
		if err := json.Unmarshal([]byte(read(t, dist, name)), &bom); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if bom.BomFormat != "CycloneDX" || bom.Metadata.Component.Version != version {
			t.Errorf("%s is of format %s and describes %+v, want CycloneDX and %s", name, bom.BomFormat, bom.Metadata.Component, version)
		}
		have := map[string]string{}
		for _, c := range bom.Components {
			if have[c.Name] = c.Version; strings.HasPrefix(c.Name, ".") || strings.HasPrefix(c.Version, "(") {
				t.Errorf("%s has %s %s, which nobody can look up", name, c.Name, c.Version)
			}
		}
		archive := fmt.Sprintf("%s_%s_linux_%s", program, version[1:], runtime.GOARCH)
		licences := in(t, dist, nil, "tar", "-xzOf", archive+".tar.gz", archive+"/LICENSES.others")
		for m := range have {
			if m != "std" && m != module && !strings.HasPrefix(m, module+"/") && !strings.Contains(licences, "\n=== "+m+" ") {
				t.Errorf("LICENSES.others of %s has no licence of %s", program, m)
			}
		}
		if !strings.Contains(licences, "\n=== Go go1.") || !strings.Contains(licences, "Copyright 2009 The Go Authors") {
			t.Errorf("LICENSES.others of %s has no licence of Go", program)
		}
		for _, m := range []string{"github.com/redis/rueidis", "github.com/jackc/pgx/v5", "go.etcd.io/etcd/client/v3", "std"} {
			if have[m] == "" {
				t.Errorf("%s has no %s", name, m)
			}
		}
	}
}

// install runs a block of commands as README has them, for this kind of machine, and looks at what the user has then. What leads out of
// the machine or needs its administrator is done by stand-ins: curl takes from the clone's dist, and sudo changes a folder.
func install(t *testing.T, clone, block, version string) {
	t.Helper()
	home := t.TempDir()
	for _, dir := range []string{"bin", "gobin", "root/usr/local/bin", "shop"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/curl", "#!/bin/sh\nset -eu\ntest \"$1\" = -fLO\ncp "+clone+"/dist/\"$(basename \"$2\")\" .\n")
	write("bin/sudo", `#!/bin/sh
set -eu
case "$1 $2" in
"apt install") dpkg-deb --extract "$3" `+home+`/root ;;
"install interlock_"*) install "$2" `+home+`/root"$3" ;;
*) echo "sudo does not know $*" >&2; exit 1 ;;
esac
`)
	shop := filepath.Join(home, "shop")
	env := append(proxy(t, clone, home, version), "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"), "GOBIN="+filepath.Join(home, "gobin"))
	in(t, shop, env, "go", "mod", "init", "example.org/shop")
	in(t, shop, env, "sh", "-euc", strings.ReplaceAll(block, "amd64", runtime.GOARCH))

	says := func(program string) {
		t.Helper()
		if got, want := in(t, home, nil, program, "--version"), "interlock "+version+" "; !strings.HasPrefix(got, want) {
			t.Errorf("%s --version says %q, want %q", program, got, want)
		}
	}
	switch {
	case strings.Contains(block, "go install"):
		says("gobin/interlock")
	case strings.Contains(block, "apt install"):
		says("root/usr/bin/interlock")
		for _, name := range []string{
			"share/bash-completion/completions/interlock", "share/zsh/vendor-completions/_interlock", "share/fish/vendor_completions.d/interlock.fish",
			"lib/systemd/system/interlock@.service", "lib/systemd/system/interlock-prune.timer", "share/doc/interlock/copyright", "share/doc/interlock/licenses.gz", "share/doc/interlock/changelog.gz",
		} {
			if text := read(t, home, "root/usr/"+name); text == "" {
				t.Errorf("%s is empty", name)
			}
		}
		if page := in(t, home, nil, "gzip", "-dc", "root/usr/share/man/man1/interlock.1.gz"); !strings.Contains(page, `"interlock `+version+`"`) {
			t.Errorf("the page of the manual does not name %s:\n%.300s", version, page)
		}
		if got := in(t, shop, nil, "dpkg-deb", "--field", "interlock_"+version[1:]+"_"+runtime.GOARCH+".deb", "Version"); got != version[1:]+"\n" {
			t.Errorf("the package is of version %q, want %s", got, version[1:])
		}
	case strings.Contains(block, "tar "):
		says("root/usr/local/bin/interlock")
		for _, name := range []string{"LICENSE", "LICENSES.others", "README.md", "interlock.1", "completions/interlock.bash", "completions/_interlock", "completions/interlock.fish"} {
			if text := read(t, shop, fmt.Sprintf("interlock_%s_linux_%s/%s", version[1:], runtime.GOARCH, name)); text == "" {
				t.Errorf("%s is empty", name)
			}
		}
	case strings.Contains(block, "go get"):
		write("shop/main.go", `package main

import (
	"context"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/redislock"
)

func main() { _, _ = interlock.Open(context.Background(), "redis://localhost", nil) }
`)
		in(t, shop, env, "go", "mod", "tidy")
		in(t, shop, env, "go", "build", ".")
		if got := in(t, shop, env, "go", "list", "-m", module); got != module+" "+version+"\n" {
			t.Errorf("go list -m says %q", got)
		}
	default:
		t.Errorf("nothing is known to be there after\n%s", block)
	}
}

// proxy makes a module proxy of a clone, with the one version, and returns the environment in which the go command asks it first. Other
// modules come from the cache of this machine, or from where they always do. The cache that is filled is one of the test's own: what it
// takes to be this version is not what the world will know by that name.
func proxy(t *testing.T, clone, home, version string) []string {
	t.Helper()
	dir := filepath.Join(home, "proxy", module, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": `{"Version":"` + version + `"}`,
		version + ".mod":  read(t, clone, "go.mod"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A module has no files of the modules below it.
	args := []string{"archive", "--format=zip", "--prefix=" + module + "@" + version + "/", "--output=" + filepath.Join(dir, version+".zip"), version, "--", "."}
	for _, mod := range strings.Fields(in(t, clone, nil, "git", "ls-files", "--", "*/go.mod")) {
		args = append(args, ":(exclude)"+filepath.Dir(mod))
	}
	in(t, clone, nil, "git", args...)

	from := strings.Fields(in(t, clone, nil, "go", "env", "GOMODCACHE", "GOPROXY"))
	return []string{
		"GOPROXY=file://" + filepath.Join(home, "proxy") + ",file://" + filepath.Join(from[0], "cache", "download") + "," + from[1],
		"GOMODCACHE=" + filepath.Join(home, "modcache"), "GONOSUMDB=*", "GOWORK=off",
		"CGO_ENABLED=0", "GOFLAGS=-modcacherw -trimpath", // what .ci/build has compiled is not compiled again
	}
}
