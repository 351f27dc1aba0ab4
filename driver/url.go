package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Opener opens the store that a URL names, or says why not: it tries once. What it opens, Driver.Close closes. Every parameter that it does not
// know is an error: see [Params].
//
// To open a store takes no lock there, so whatever a server does not answer, or answers by "not now", matches [ErrNotSent], and
// interlock.Open tries again. What more tries do not change must not match it, or matches [ErrRefused] or [ErrUnable] as well: a wrong
// password, a missing right, a certificate, a server that cannot have locks. ctx bounds it, and its error names the server that was tried.
type Opener func(ctx context.Context, u *url.URL) (Driver, error)

var (
	openersMu sync.Mutex
	openers   = map[string]Opener{}
	lookers   = map[string]Opener{}
)

// homes says which package brings a scheme, for the message to a program that forgot to import it.
var homes = map[string]string{
	"mem":  "memlock",
	"file": "filelock",

	"redis":              "redislock",
	"rediss":             "redislock",
	"redis+sentinel":     "redislock",
	"redis+sentinel+tls": "redislock",
	"redis+cluster":      "redislock",
	"redis+cluster+tls":  "redislock",

	"redlock":     "redlock",
	"redlock+tls": "redlock",

	"redisson":              "redissonlock",
	"redisson+tls":          "redissonlock",
	"redisson+sentinel":     "redissonlock",
	"redisson+sentinel+tls": "redissonlock",
	"redisson+cluster":      "redissonlock",
	"redisson+cluster+tls":  "redissonlock",

	"postgres":   "pglock",
	"postgresql": "pglock",

	"shedlock+postgres": "shedlock",
	"shedlock+mysql":    "shedlock",
	"mysql":             "mysqllock",
	"etcd":              "etcdlock",
	"etcd+tls":          "etcdlock",
	"memcached":         "memcachedlock",
	"memcached+tls":     "memcachedlock",
	"zk":                "zklock",
	"zk+tls":            "zklock",
}

// Register makes a scheme known to [OpenURL]. Packages of stores call it from init; a second call for a scheme panics.
func Register(scheme string, open Opener) {
	openersMu.Lock()
	defer openersMu.Unlock()
	if _, ok := openers[scheme]; ok {
		panic("driver: scheme " + scheme + " is registered twice")
	}
	openers[scheme] = open
}

// RegisterLooker makes known how [LookURL] opens a scheme, where what Register was called with writes to the store. Packages of stores call
// it from init.
func RegisterLooker(scheme string, open Opener) {
	openersMu.Lock()
	defer openersMu.Unlock()
	lookers[scheme] = open
}

// Schemes returns the known schemes in order.
func Schemes() []string {
	openersMu.Lock()
	defer openersMu.Unlock()
	return slices.Sorted(maps.Keys(openers))
}

// URLError is a mistake in a store's URL: no store can be meant by it, and none was asked.
type URLError struct{ Err error }

// Error implements error.
func (e *URLError) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *URLError) Unwrap() error { return e.Err }

func badURL(format string, args ...any) error { return &URLError{fmt.Errorf(format, args...)} }

// OpenURL opens the store that rawURL names, by one try: see [Opener]. The parameter fence_base is every store's: see [WithFenceBase]. What is wrong
// with the URL itself matches [*URLError]. Its errors never hold what the URL keeps secret.
func OpenURL(ctx context.Context, rawURL string) (Driver, error) {
	return openURL(ctx, rawURL, func(scheme string) Opener { return openers[scheme] })
}

// LookURL opens a store as [OpenURL] does, for a look: as long as nothing else is asked for than what [Inspector], [Watcher] and [Examiner] show,
// nothing is written there on servers. On some stores its driver opens no sessions.
func LookURL(ctx context.Context, rawURL string) (Driver, error) {
	return openURL(ctx, rawURL, func(scheme string) Opener {
		if look := lookers[scheme]; look != nil {
			return look
		}
		return openers[scheme]
	})
}

// openURL opens a store by what find knows of its scheme, while openersMu is held.
func openURL(ctx context.Context, rawURL string, find func(scheme string) Opener) (Driver, error) {
	u, err := parse(rawURL)
	if err != nil {
		// The error of url.Parse quotes the URL, with its password.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		if strings.ContainsAny(err.Error(), "\"@") {
			err = errors.New("it is malformed")
		}
		return nil, badURL("driver: cannot read the store's URL: %w: want SCHEME:… with one of %s, and in a user, a password and a path what means something in URLs as %%XX", err, strings.Join(Schemes(), ", "))
	}
	openersMu.Lock()
	open := find(u.Scheme)
	openersMu.Unlock()
	if open == nil {
		hint := ""
		if home, ok := homes[u.Scheme]; ok {
			hint = fmt.Sprintf(`; import _ "github.com/interlock-go/interlock/%s" to have it`, home)
		}
		return nil, badURL("driver: unknown scheme %q in the store's URL: known here are %s%s", u.Scheme, strings.Join(Schemes(), ", "), hint)
	}
	base, err := cutFenceBase(u)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, u)
	if err != nil {
		return nil, located(err, u.Host)
	}
	if base == 0 {
		return d, nil
	}
	moved, err := WithFenceBase(d, base)
	if err != nil {
		_ = d.Close(ctx) // why is what the caller must hear
		return nil, err
	}
	return moved, nil
}

// located says where nothing could be reached, if the error does not.
func located(err error, hosts string) error {
	if hosts == "" || !errors.Is(err, ErrNotSent) {
		return err
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if strings.Contains(err.Error(), host) {
			return err
		}
	}
	return fmt.Errorf("%w, at %s", err, hosts)
}

// parse is [url.Parse], and reads lists of hosts in which IPv6 addresses stand in brackets. Package url reads one such host, alone.
func parse(rawURL string) (*url.URL, error) {
	u, err := url.Parse(rawURL)
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if err == nil || !ok {
		return u, err
	}
	end := strings.IndexAny(rest+"/", "/?#")
	at := strings.LastIndex(rest[:end], "@") + 1
	var hosts []string
	for host := range strings.SplitSeq(rest[at:end], ",") {
		one, wrong := url.Parse(scheme + "://" + host)
		if wrong != nil || one.User != nil {
			return nil, err
		}
		hosts = append(hosts, one.Host)
	}
	if u, err = url.Parse(scheme + "://" + rest[:at] + rest[end:]); err == nil {
		u.Host = strings.Join(hosts, ",")
	}
	return u, err
}

// fenceBase is the parameter of every store that draws tokens.
const fenceBase = "fence_base"

// CutFenceBase returns a store's URL without the parameter fence_base, and its value; without one, rawURL as it is and 0. It is for programs
// that read the URL by the ParseURL of the store's package, which does not know that parameter.
func CutFenceBase(rawURL string) (rest string, base uint64, err error) {
	u, err := parse(rawURL)
	if err != nil {
		return rawURL, 0, nil //nolint:nilerr // ParseURL says what is wrong with it, without secrets
	}
	params := u.RawQuery
	if base, err = cutFenceBase(u); u.RawQuery == params {
		return rawURL, base, err
	}
	return u.String(), base, err
}

// cutFenceBase takes it out of u, and leaves all others as they are written.
func cutFenceBase(u *url.URL) (base uint64, err error) {
	var own, others []string
	for param := range strings.SplitSeq(u.RawQuery, "&") {
		if name, _, _ := strings.Cut(param, "="); name == fenceBase {
			own = append(own, param)
		} else {
			others = append(others, param)
		}
	}
	if own == nil {
		return 0, nil
	}
	p := NewParams(&url.URL{RawQuery: strings.Join(own, "&")})
	base = Param(p, fenceBase, func(s string) (uint64, error) {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q: want a number from 0 to %d, larger than all tokens that were drawn elsewhere", s, uint64(maxFenceBase))
		}
		return n, checkFenceBase(n)
	})
	u.RawQuery = strings.Join(others, "&")
	return base, p.Err()
}

// Params reads the parameters of a store's URL. Each may stand there once; Err names the first that was malformed or
// that nobody asked for; it matches [*URLError].
type Params struct {
	values url.Values
	known  []string
	err    error
}

// NewParams reads the query of u.
func NewParams(u *url.URL) *Params {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		err = badURL("driver: the parameters of the store's URL are malformed: want ?name=value&name=value")
	}
	return &Params{values: values, err: err}
}

// Param reads one parameter with parse; absent, it is the zero value.
func Param[T any](p *Params, name string, parse func(string) (T, error)) (value T) {
	if !slices.Contains(p.known, name) { // each of several hosts may ask for it
		p.known = append(p.known, name)
	}
	given := p.values[name]
	if len(given) == 0 || p.err != nil {
		return value
	}
	if len(given) > 1 {
		p.err = badURL("driver: parameter %s stands %d times in the store's URL: want it once", name, len(given))
		return value
	}
	v, err := parse(given[0])
	if err != nil {
		p.err = badURL("driver: parameter %s of the store's URL: %w", name, err)
		return value
	}
	return v
}

// Err returns what was wrong with the parameters, after all known ones were read.
func (p *Params) Err() error {
	if p.err != nil {
		return p.err
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.Contains(p.known, name) {
			known := slices.Clone(p.known)
			if !slices.Contains(known, fenceBase) {
				known = append(known, fenceBase) // which OpenURL has taken
			}
			return badURL("driver: unknown parameter %q in the store's URL: known are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Redact returns rawURL as it may be shown: without password and without parameters that look like secrets.
func Redact(rawURL string) string {
	u, err := parse(rawURL)
	if err != nil {
		scheme, _, _ := strings.Cut(rawURL, ":")
		return scheme + ":…"
	}
	if (u.Host != "" || u.User != nil) && strings.Contains(u.EscapedPath()+u.RawQuery+u.EscapedFragment(), "@") {
		return u.Scheme + ":…" // an unescaped character of a password has ended the host
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	}
	q := u.Query()
	for name := range q {
		lower := strings.ToLower(name)
		for _, word := range []string{"pass", "secret", "token", "key", "auth", "credential"} {
			if strings.Contains(lower, word) && lower != "keys" { // which is how keys are made
				q.Set(name, "xxxxx")
			}
		}
	}
	if len(q) > 0 {
		u.RawQuery = q.Encode()
	}
	return u.String()
}
