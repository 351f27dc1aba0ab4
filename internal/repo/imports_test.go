package repo

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// What each store may import besides the standard library, the contract and internal packages: the client of its product. The
// rule holds for what the store's internal packages import, too.
var clients = map[string][]string{
	"memlock":  nil,
	"filelock": {"golang.org/x/sys"},

	"redislock": {"github.com/redis/rueidis"},
	"redlock":   {"github.com/redis/rueidis"},

	"redissonlock": {"github.com/redis/rueidis"},

	"pglock": {"github.com/jackc/pgx/v5"},

	"shedlock":      {"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql"},
	"mysqllock":     {"github.com/go-sql-driver/mysql"},
	"memcachedlock": nil,
	// The client's interface has types of its packages api and of gRPC, and its log is zap's.
	"etcdlock": {"go.etcd.io/etcd", "google.golang.org/grpc", "go.uber.org/zap"},
	"zklock":   nil, // speaks the protocol itself
}

// contract are the packages that every driver may import: the contract, and the rule.
var contract = []string{"driver", "driver/line"}

// connections are packages of this module that several stores of one product share, beside the contract and internal packages.
var connections = []string{"redisconn"}

// forTests are packages that only tests import.
var forTests = []string{"internal/redistest", "internal/storetest", "internal/connlock/pipetest", "fence/internal/tabletest"}

// Names that say nothing about what is in a package.
var meaningless = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib"}

func TestCoreImportsOnlyTheStandardLibrary(t *testing.T) {
	for _, core := range append([]string{""}, contract...) {
		seen := false
		for _, p := range list(t, "-deps", "./"+core) {
			if p.Standard {
				continue
			}
			seen = true
			if p.ImportPath != module && !slices.Contains(contract, strings.TrimPrefix(p.ImportPath, module+"/")) && !internal(p.ImportPath) {
				t.Errorf("%s needs %s: it may need the standard library, driver and internal packages", path.Join(module, core), p.ImportPath)
			}
		}
		if !seen {
			t.Errorf("go list -deps ./%s does not even list the package itself", core)
		}
	}
}

func TestDriverDoesNotKnowTheCore(t *testing.T) {
	for _, p := range list(t, "-deps", "./driver", "./driver/line") {
		if p.ImportPath == module {
			t.Error("driver needs the core: a contract must not know who uses it")
		}
	}
}

func TestStoresImportTheirClientOnly(t *testing.T) {
	for _, p := range list(t, "./...") {
		store := strings.TrimPrefix(p.ImportPath, module+"/")
		if strings.Contains(store, "/") || !strings.HasSuffix(store, "lock") || p.ImportPath == module {
			continue
		}
		client, known := clients[store]
		if !known {
			t.Errorf("%s is not in the table of stores: add it, with the modules that it may import", store)
			continue
		}
		for _, dep := range list(t, "-deps", "./"+store) {
			if !own(dep.ImportPath) {
				continue
			}
			shared := slices.Concat(contract, connections)
			if dep.ImportPath != p.ImportPath && !internal(dep.ImportPath) && !below(dep.ImportPath, store) &&
				!slices.Contains(shared, strings.TrimPrefix(dep.ImportPath, module+"/")) {
				t.Errorf("%s needs %s: of this module it may need %s and internal packages", store, dep.ImportPath, strings.Join(contract, ", "))
			}
			for _, i := range dep.Imports {
				if !own(i) && !standard(i) && !belongs(i, client) {
					t.Errorf("%s imports %s, which %s may not need", dep.ImportPath, i, store)
				}
			}
		}
	}
}

// belongs reports whether the package is of one of the modules.
func belongs(importPath string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return importPath == m || strings.HasPrefix(importPath, m+"/") })
}

func TestNothingImportsACommand(t *testing.T) {
	for _, p := range list(t, "./...") {
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if below(i, "cmd") {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
			if strings.HasPrefix(i, "github.com/stretchr/testify") {
				t.Errorf("%s imports %s: write the comparison", p.ImportPath, i)
			}
		}
	}
}

func TestOnlyTestsImportWhatIsForTests(t *testing.T) {
	for _, p := range list(t, "./...") {
		for _, i := range p.Imports {
			if slices.Contains(forTests, strings.TrimPrefix(i, module+"/")) {
				t.Errorf("%s imports %s, which is for tests", p.ImportPath, i)
			}
		}
	}
}

func TestPackagesAreNamedForWhatTheyDo(t *testing.T) {
	for _, p := range list(t, "./...") {
		if slices.Contains(meaningless, p.Name) {
			t.Errorf("%s: %q says nothing about what is in it", p.ImportPath, p.Name)
		}
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	for _, p := range list(t, "./...") {
		switch {
		case p.Name == "main" && p.Doc == "":
			t.Errorf("%s: a command needs a comment above its package clause", p.ImportPath)
		case p.Name != "main" && !strings.HasPrefix(p.Doc, "Package "+p.Name+" "):
			t.Errorf("%s: the package comment must begin with %q, not %q", p.ImportPath, "Package "+p.Name, p.Doc)
		}
	}
}
