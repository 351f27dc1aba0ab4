package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// What every process of a command can read has no password and no user in it.
func TestBareStore(t *testing.T) {
	for rawURL, want := range map[string]string{
		"file:/var/lib/locks":                                   "file:/var/lib/locks",
		"redis://user:geheim@db:6379/1?timeout=3s":              "redis://db:6379/1?timeout=3s",
		"redlock://user:geheim@a,b,c":                           "redlock://a,b,c",
		"etcd://user:geheim@[::1]:1,[::2]:2":                    "etcd://[::1]:1,[::2]:2",
		"postgres://user@db/shop?password=geheim":               "postgres://db/shop?password=xxxxx",
		"redis://user:gehe/im@db:6379":                          "redis:…",
		"memcached://db":                                        "memcached://db",
		"redis://user:geheim@db?sentinel_password_file=/run/it": "redis://db?sentinel_password_file=xxxxx",
	} {
		got := bareStore(driver.Redact(rawURL))
		if got != want || strings.Contains(got, "user") || strings.Contains(got, "geheim") {
			t.Errorf("%s is named %s, want %s", rawURL, got, want)
		}
	}
}

// What is told of the leases around is read as it was written, and nothing else is.
func TestLeasesAround(t *testing.T) {
	a, b := aroundLease{"a job", 64, "file:/var/lib/locks"}, aroundLease{"b", 0, "redis://db"}
	for text, want := range map[string][]aroundLease{
		"":                                   nil,
		"job":                                nil,
		"job\tmany\tfile:x":                  nil,
		a.String():                           {a},
		a.String() + "\n" + b.String():       {a, b},
		a.String() + "\njunk\n" + b.String(): {a, b},
	} {
		t.Setenv(envHeld, text)
		if got := leasesAround(); !slices.Equal(got, want) {
			t.Errorf("%q is read as %v, want %v", text, got, want)
		}
	}
	t.Setenv(envHeld, a.String())
	t.Setenv(envFence, "64")
	env := environ(b)
	for name, want := range map[string]string{envName: "b", envFence: "0", envHeld: a.String() + "\n" + b.String()} {
		if !slices.Contains(env, name+"="+want) {
			t.Errorf("the command is not told %s=%q", name, want)
		}
	}
}
