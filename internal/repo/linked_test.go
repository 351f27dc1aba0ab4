package repo

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What cmd/interlock links of other modules: the command line, tables, the terminal, and the clients of the stores with what these need.
var linked = []string{
	"github.com/alecthomas/kong",
	"github.com/jedib0t/go-pretty/v6",
	"github.com/mattn/go-runewidth",
	"github.com/rivo/uniseg",
	"golang.org/x/sys",
	"golang.org/x/term",

	"github.com/redis/rueidis",

	"github.com/jackc/pgpassfile",
	"github.com/jackc/pgservicefile",
	"github.com/jackc/pgx/v5",
	"github.com/jackc/puddle/v2",
	"golang.org/x/sync",
	"golang.org/x/text",

	"filippo.io/edwards25519",
	"github.com/go-sql-driver/mysql",

	"github.com/coreos/go-semver",
	"github.com/coreos/go-systemd/v22",
	"github.com/gogo/protobuf",
	"github.com/golang/protobuf",
	"github.com/grpc-ecosystem/grpc-gateway/v2",
	"go.etcd.io/etcd/api/v3",
	"go.etcd.io/etcd/client/pkg/v3",
	"go.etcd.io/etcd/client/v3",
	"go.uber.org/multierr",
	"go.uber.org/zap",
	"golang.org/x/net",
	"google.golang.org/genproto/googleapis/api",
	"google.golang.org/genproto/googleapis/rpc",
	"google.golang.org/grpc",
	"google.golang.org/protobuf",
}

// Packages of this module that are for those who try locks, and not for those who take them.
var lab = []string{
	"torture", "examples", "cmd/interlock-lab", "driver/drivertest",
	"internal/foreigntest", "internal/mutant", "internal/proof", "internal/servertest", "internal/slow", "internal/worker", "internal/workers",
}

// An operator's machine gets what an operator runs: no torture, no play, no test servers, no database, and not the package testing.
func TestInterlockLinksWhatAnOperatorRuns(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range list(t, "-deps", "./cmd/interlock") {
		of := func(m string) bool { return belongs(p.ImportPath, []string{m}) }
		switch i := slices.IndexFunc(linked, of); {
		case p.ImportPath == "testing":
			t.Error("cmd/interlock links testing")
		case standard(p.ImportPath):
		case own(p.ImportPath):
			if slices.ContainsFunc(slices.Concat(lab, forTests), func(folder string) bool { return below(p.ImportPath, folder) }) {
				t.Errorf("cmd/interlock links %s, which belongs into cmd/interlock-lab", p.ImportPath)
			}
		case i < 0:
			t.Errorf("cmd/interlock links %s: an operator needs it for nothing, or it is missing in the list of what is linked", p.ImportPath)
		default:
			seen[linked[i]] = true
		}
	}
	for _, m := range linked {
		if !seen[m] {
			t.Errorf("cmd/interlock links nothing of %s: take it out of the list", m)
		}
	}
}

// Who imports one store gets a go.mod with few modules, and a go.sum with few more: go mod tidy looks into the tests of what is imported,
// too, so what these import everybody has to load.
func TestConsumerOfOneStoreLoadsLittle(t *testing.T) {
	dir := t.TempDir()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.org/consumer\n\ngo 1.25.0\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + top + "\n",
		"main.go": `package main

import (
	"context"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/redislock"
)

func main() { _, _ = interlock.Open(context.Background(), "redis://localhost", nil) }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command(t, nil, "go", "-C", dir, "mod", "tidy")
	lines := func(text []byte) []string { return strings.Split(strings.TrimSpace(string(text)), "\n") }
	modules := lines(command(t, nil, "go", "-C", dir, "list", "-m", "all"))
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	// As many as there are. One more is to be meant: a test that imports a new module has every user load it.
	const mostModules, mostSums = 44, 22
	if n := len(modules); n > mostModules {
		t.Errorf("%d modules, want %d at most:\n%s", n, mostModules, strings.Join(modules, "\n"))
	}
	if n := len(lines(sums)); n > mostSums {
		t.Errorf("%d lines in go.sum, want %d at most:\n%s", n, mostSums, sums)
	}
}
