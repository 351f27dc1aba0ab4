package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/interlock-go/interlock/driver"
)

// storeFlags name the store.
type storeFlags struct {
	Store     string `help:"The store's URL, as file:DIRECTORY, redis://HOST or postgres://USER@HOST/DATABASE; interlock --help has all kinds, and where to read of each. Default: the embedded store of this user." placeholder:"URL" env:"INTERLOCK_STORE"`
	StoreFile string `help:"A file whose first line is the store's URL, so that its password is not seen by others." placeholder:"FILE" env:"INTERLOCK_STORE_FILE" type:"path"`

	args    []string // the command line as given
	content []byte   // of the file, once it is read
}

// commonFlags are the flags that every command takes.
type commonFlags struct {
	storeFlags
	JSON    bool `help:"Print JSON instead of a table, and on stderr an object in each line: error and status, warning, or notice." name:"json"`
	Verbose bool `short:"v" help:"Say also what the store's driver logs, such as settings of a server that lose locks."`
}

// file returns what stands in the file of --store-file. It is read once: a pipe, as a shell's
// <(command) is one, has it once.
func (f *storeFlags) file() ([]byte, error) {
	if f.content == nil {
		b, err := os.ReadFile(f.StoreFile)
		if err != nil {
			return nil, &exitError{exitStore, fmt.Errorf("cannot read the store's URL: %w", err)}
		}
		f.content = b
	}
	return f.content, nil
}

// url returns the store's URL, and a warning for people when it was given in an unwise way.
func (f *storeFlags) url() (storeURL, warning string, err error) {
	args := f.args
	if os.Getenv("INTERLOCK_STORE_FILE") == "" && !given(args, "--store-file") {
		f.StoreFile = "" // kong has made a path of an empty variable
	}
	switch {
	case f.Store == "" && given(args, "--store"):
		return "", "", usage("--store is empty, as a variable that is not set: want a URL, as file:PATH, or no --store for the embedded store of this user")
	case empty(args, "--store-file"):
		return "", "", usage("--store-file is empty, as a variable that is not set: want a file whose first line is the store's URL")
	case f.Store != "" && f.StoreFile != "" && givenBoth(args, os.Getenv):
		return "", "", usage("both --store and --store-file name a store: give one")
	case f.StoreFile != "" && !given(args, "--store"):
		b, err := f.file()
		if err != nil {
			return "", "", err
		}
		first, _, _ := strings.Cut(string(b), "\n")
		if first = strings.TrimSpace(first); first == "" {
			return "", "", usage("the first line of %s is empty: want the store's URL", f.StoreFile)
		}
		return first, "", nil
	case f.Store != "":
		if given(args, "--store") && hasPassword(f.Store) {
			warning = passwordShown
		}
		return f.Store, warning, nil
	}
	dir, err := defaultStore()
	if err == nil {
		err = makeAbove(dir)
	}
	if err != nil {
		return "", "", err
	}
	return "file:" + dir, "", nil
}

// passwordShown warns of a password on the command line.
const passwordShown = "the password in --store can be read by every user of this machine: use --store-file or INTERLOCK_STORE_FILE"

// hasPassword reports whether a store's URL has a password.
func hasPassword(storeURL string) bool {
	u, err := url.Parse(storeURL)
	if err != nil {
		return false
	}
	_, secret := u.User.Password()
	return secret || u.Query().Has("password")
}

// makeAbove makes the folders above the default store. A new user has no ~/.local/state, and
// programs that want one make it for the user alone (XDG Base Directory Specification). Nothing is
// made above a store that was named: its name may be misspelt.
func makeAbove(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return &exitError{exitStore, fmt.Errorf("cannot make the folder of the embedded store: %w: want a home that this user may write to, or --store file:PATH", err)}
	}
	return nil
}

// given reports whether a flag stands on the command line, before the arguments of the command that
// run runs.
func given(args []string, flag string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if a == flag || strings.HasPrefix(a, flag+"=") {
			return true
		}
	}
	return false
}

// empty reports whether a flag is given an empty value. Kong does not say so of a path.
func empty(args []string, flag string) bool {
	for i, a := range args {
		switch {
		case a == "--":
			return false
		case a == flag+"=", a == flag && i+1 < len(args) && args[i+1] == "":
			return true
		}
	}
	return false
}

// givenBoth reports whether both ways to name a store were used with the same authority: both
// flags, or both variables.
func givenBoth(args []string, getenv func(string) string) bool {
	store, file := given(args, "--store"), given(args, "--store-file")
	return store && file || !store && !file && getenv("INTERLOCK_STORE") != "" && getenv("INTERLOCK_STORE_FILE") != ""
}

// defaultStore is the folder of the embedded store of the effective user. It comes from the
// password entry and never from HOME or XDG_*, which cron, systemd and sudo set otherwise than a
// login does: two of them would silently have two stores, and no exclusion.
func defaultStore() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/interlock", nil
	}
	dir, err := home(os.Geteuid())
	if err == nil && filepath.IsAbs(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return filepath.Join(dir, ".local", "state", "interlock"), nil
		}
	}
	return "", &exitError{exitStore, fmt.Errorf("user %d has no home folder for the embedded store: name one, as --store file:/var/lib/NAME or "+
		"INTERLOCK_STORE; under systemd with StateDirectory=NAME and Environment=INTERLOCK_STORE=file:/var/lib/NAME", os.Geteuid())}
}

// open opens the store by one try. The name is the URL without its secrets, for people.
func (f *storeFlags) open(ctx context.Context, t terminal) (d driver.Driver, name string, err error) {
	return f.openBy(ctx, t, driver.OpenURL)
}

// openBy opens the store by a function of its URL, and warns if the password can be read by others.
func (f *storeFlags) openBy(ctx context.Context, t terminal, open func(context.Context, string) (driver.Driver, error)) (d driver.Driver, name string, err error) {
	storeURL, warning, err := f.url()
	if err != nil {
		return nil, "", err
	}
	if warning != "" {
		t.warn(warning)
	}
	if scheme, _, _ := strings.Cut(storeURL, ":"); strings.EqualFold(scheme, "mem") {
		return nil, "", usage("%s is the memory of one process: nobody else would see this lock: want a store that all share, as file:PATH", driver.Redact(storeURL))
	}
	if d, err = open(ctx, storeURL); err != nil {
		return nil, "", storeError(withoutMemory(err))
	}
	return d, driver.Redact(storeURL), nil
}

// view opens the store for reading.
func (f *storeFlags) view(ctx context.Context, t terminal) (*view, error) {
	d, name, err := f.openBy(ctx, t, driver.LookURL)
	if err != nil {
		return nil, err
	}
	// Nothing of ours is in the store, so an error of Close is of no matter.
	v := &view{store: name, close: func() { _ = d.Close(context.WithoutCancel(ctx)) }}
	i, ok := d.(driver.Inspector)
	if !ok {
		v.close()
		return nil, &exitError{exitStore, fmt.Errorf("%s cannot be looked into", name)}
	}
	v.Inspector = i
	return v, nil
}

// line opens the store for reading and returns the line of a name that was given.
func (f *storeFlags) line(ctx context.Context, t terminal, name string) (*view, driver.Line, error) {
	if err := named(name); err != nil {
		return nil, driver.Line{}, err
	}
	v, err := f.view(ctx, t)
	if err != nil {
		return nil, driver.Line{}, err
	}
	l, err := v.Line(ctx, name)
	if err != nil {
		v.close()
		return nil, driver.Line{}, storeError(err)
	}
	return v, l, nil
}

// choose sets the flag, if it is one of those that name the store.
func (f *storeFlags) choose(flag, value string) {
	switch flag {
	case "--store":
		f.Store = value
	case "--store-file":
		f.StoreFile = kong.ExpandPath(value)
	}
}

// stores returns the names and URLs of all stores that are named: by each --store, by each line of
// the file, or as for the other commands.
func (f *storeFlags) stores(t terminal) (stores [][2]string, err error) {
	last, _, err := f.url() // which refuses what contradicts itself
	if err != nil {
		return nil, err
	}
	urls := f.each()
	if slices.ContainsFunc(urls, func(u string) bool {
		_, u = storeName(u)
		return hasPassword(u)
	}) {
		t.warn(passwordShown)
	}
	if len(urls) == 0 && f.StoreFile != "" {
		b, err := f.file()
		if err != nil {
			return nil, err
		}
		urls = storeLines(b)
	}
	if len(urls) == 0 {
		urls = []string{last}
	}
	for _, u := range urls {
		name, u := storeName(u)
		if name == "" {
			name = "default"
		}
		if scheme, _, _ := strings.Cut(u, ":"); strings.EqualFold(scheme, "mem") {
			return nil, usage("%s is the memory of one process: nothing of it would be seen here: want a store that all share, as file:PATH", driver.Redact(u))
		}
		stores = append(stores, [2]string{name, u})
	}
	return stores, nil
}

// each returns the values of all flags --store. Kong keeps the last one.
func (f *storeFlags) each() (urls []string) {
	for i, a := range f.args {
		switch value, ok := strings.CutPrefix(a, "--store="); {
		case a == "--":
			return urls
		case ok:
			urls = append(urls, value)
		case a == "--store" && i+1 < len(f.args):
			urls = append(urls, f.args[i+1])
		}
	}
	return urls
}

// storeLines returns the stores of a file with one in each line.
func storeLines(b []byte) (urls []string) {
	for line := range strings.Lines(string(b)) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			urls = append(urls, text)
		}
	}
	return urls
}

// storeName returns the name before a store's URL, as in orders=redis://HOST, and the URL.
func storeName(text string) (name, url string) {
	name, url, ok := strings.Cut(text, "=")
	if !ok || strings.ContainsAny(name, ":/?@") {
		return "", text
	}
	return name, url
}
