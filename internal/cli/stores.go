package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// storeKinds are the stores of Interlock as a URL names them. A program may know fewer, and others.
var storeKinds = []struct {
	form, what string
	schemes    []string
}{
	{"file:DIRECTORY", "one machine; the default", []string{"file"}},
	{"redis://HOST:6379/0", "Redis, Valkey", []string{"redis", "rediss"}},
	{"redis+sentinel://HOST,HOST/MASTER", "the master that Sentinels name", []string{"redis+sentinel", "redis+sentinel+tls"}},
	{"redis+cluster://HOST,HOST", "a Redis Cluster", []string{"redis+cluster", "redis+cluster+tls"}},
	{"redlock://HOST,HOST,HOST", "independent masters of Redis", []string{"redlock", "redlock+tls"}},
	{"redisson://HOST:6379/0", "as Redisson; all forms of redis://", []string{
		"redisson", "redisson+tls", "redisson+sentinel", "redisson+sentinel+tls", "redisson+cluster", "redisson+cluster+tls",
	}},
	{"postgres://USER@HOST/DATABASE", "PostgreSQL", []string{"postgres", "postgresql"}},
	{"mysql://USER@HOST/DATABASE", "MariaDB, MySQL", []string{"mysql"}},
	{"shedlock+postgres://USER@HOST/DATABASE", "as Java's ShedLock; shedlock+mysql://", []string{"shedlock+postgres", "shedlock+mysql"}},
	{"etcd://HOST,HOST,HOST", "etcd", []string{"etcd", "etcd+tls"}},
	{"memcached://HOST", "memcached, for efficiency only", []string{"memcached", "memcached+tls"}},
	{"zk://HOST,HOST,HOST/PATH", "ZooKeeper, as Java's Curator", []string{"zk", "zk+tls"}},
}

// pages is where the stores' parameters are explained.
const pages = "https://github.com/interlock-go/interlock/tree/main/docs/backends"

// schemes are those of the stores that can be named. The memory of one process is none.
func schemes() []string {
	return slices.DeleteFunc(driver.Schemes(), func(scheme string) bool { return scheme == "mem" })
}

// withoutMemory returns an error of a store's URL with only the schemes that can be named in it.
func withoutMemory(err error) error {
	if !errors.As(err, new(*driver.URLError)) {
		return err
	}
	text := strings.Replace(err.Error(), strings.Join(driver.Schemes(), ", "), strings.Join(schemes(), ", "), 1)
	if text == err.Error() {
		return err
	}
	return &driver.URLError{Err: errors.New(text)}
}

const (
	storesTitle = "Stores, as --store, INTERLOCK_STORE or the first line of --store-file names them:"
	storesMore  = "With TLS a server is rediss:// or, of another kind, has +tls behind the scheme, as etcd+tls://; databases have a parameter for it. " +
		"Parameters follow as ?name=value&name=value. Which there are is said where one is unknown; what they mean stands on the page of the store: " + pages
)

// storeKind is how a URL names a store.
type storeKind struct{ form, what string }

// knownStores are what a store's URL may be in this program.
func knownStores() (kinds []storeKind) {
	known := schemes()
	for _, k := range storeKinds {
		if slices.Contains(known, k.schemes[0]) {
			kinds = append(kinds, storeKind{k.form, k.what})
			known = slices.DeleteFunc(known, func(scheme string) bool { return slices.Contains(k.schemes, scheme) })
		}
	}
	for _, scheme := range known {
		kinds = append(kinds, storeKind{form: scheme + ":…", what: "one that this program has beside those of Interlock"})
	}
	return kinds
}

// storesHelp lists them for help, where a line that is indented stays as it is.
func storesHelp() string {
	var b strings.Builder
	b.WriteString(storesTitle + "\n\n")
	for _, k := range knownStores() {
		fmt.Fprintf(&b, "  %-38s %s\n", k.form, k.what)
	}
	return b.String() + "\n" + storesMore
}
