package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// parse reads a URL as a package of locks does.
func parse(raw string) (Config, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Config{}, err
	}
	p := driver.NewParams(u)
	c, err := ParseURL(u, p)
	return c, errors.Join(err, p.Err())
}

func TestParseURL_EveryOption(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	usual := Config{Addrs: []string{"localhost:6379"}, Timeout: DefaultTimeout, KeepAlive: DefaultKeepAlive, ClientName: "interlock"}
	with := func(change func(c *Config)) Config {
		c := usual
		change(&c)
		return c
	}
	for raw, want := range map[string]Config{
		"redis://":                           usual,
		"redis://localhost":                  usual,
		"redis://localhost:6379/":            usual,
		"redis:///0":                         usual,
		"redis://h":                          with(func(c *Config) { c.Addrs = []string{"h:6379"} }),
		"redis://h:7000":                     with(func(c *Config) { c.Addrs = []string{"h:7000"} }),
		"redis://[::1]":                      with(func(c *Config) { c.Addrs = []string{"[::1]:6379"} }),
		"redis://[::1]:7000":                 with(func(c *Config) { c.Addrs = []string{"[::1]:7000"} }),
		"redis://localhost/3":                with(func(c *Config) { c.DB = 3 }),
		"redis://localhost?db=3":             with(func(c *Config) { c.DB = 3 }),
		"redis://localhost/3?db=3":           with(func(c *Config) { c.DB = 3 }),
		"redis://:pw@localhost":              with(func(c *Config) { c.Password = "pw" }),
		"redis://me@localhost":               with(func(c *Config) { c.Username = "me" }),
		"redis://me:p%2Fw%40x@localhost":     with(func(c *Config) { c.Username, c.Password = "me", "p/w@x" }),
		"redis://?timeout=250ms":             with(func(c *Config) { c.Timeout = 250 * time.Millisecond }),
		"redis://?keepalive=1m":              with(func(c *Config) { c.KeepAlive = time.Minute }),
		"redis://?client_name=me%40here":     with(func(c *Config) { c.ClientName = "me@here" }),
		"redis://?password_file=" + password: with(func(c *Config) { c.Password = "from file" }),
		"redis+sentinel://a,b:1/main":        with(func(c *Config) { c.Addrs, c.Master = []string{"a:26379", "b:1"}, "main" }),
		"redis+sentinel://u:p@a/main/2?sentinel_user=s&sentinel_password_file=" + password: with(func(c *Config) {
			c.Addrs, c.Master, c.DB, c.Username, c.Password = []string{"a:26379"}, "main", 2, "u", "p"
			c.SentinelUsername, c.SentinelPassword = "s", "from file"
		}),
		"redis+sentinel://a/ma%40in": with(func(c *Config) { c.Addrs, c.Master = []string{"a:26379"}, "ma@in" }),
		"redis+cluster://a,b:1,c:2":  with(func(c *Config) { c.Addrs, c.Cluster = []string{"a:6379", "b:1", "c:2"}, true }),
		"rediss://localhost":         with(func(c *Config) { c.TLS = &tls.Config{MinVersion: tls.VersionTLS12} }),
		"rediss://?server_name=n&skip_verify=true": with(func(c *Config) {
			c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "n", InsecureSkipVerify: true}
		}),
		"redis+cluster+tls://localhost": with(func(c *Config) { c.Cluster, c.TLS = true, &tls.Config{MinVersion: tls.VersionTLS12} }),
		"redis+sentinel+tls://localhost/m": with(func(c *Config) {
			c.Addrs, c.Master, c.TLS = []string{"localhost:26379"}, "m", &tls.Config{MinVersion: tls.VersionTLS12}
		}),
	} {
		got, err := parse(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", raw, got, err, want)
		}
	}
}

func TestParseURL_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for raw, says := range map[string]string{
		"redis://h/x":                             "want a number",
		"redis://h/-1":                            "want 0 or more",
		"redis://h/1/2":                           "want a number",
		"redis://h/1?db=2":                        "twice",
		"redis://h?db=x":                          "db",
		"redis://h?db=1&db=1":                     "want it once",
		"redis://h:0":                             "1 to 65535",
		"redis://h:99999":                         "1 to 65535",
		"redis://a,b":                             "want one",
		"redis:h:6379":                            "want redis://",
		"redis://h#fragment":                      "#",
		"redis://h?timeout=3":                     "want a duration",
		"redis://h?timeout=0s":                    "want a duration",
		"redis://h?timeout=-1s":                   "want a duration",
		"redis://h?keepalive=often":               "want a duration",
		"redis://h?password_file=/nowhere/at/all": "password_file",
		"redis://h?sentinel_user=s":               "redis+sentinel://",
		"redis://h?strict=maybe":                  `unknown parameter "strict"`, // known to the package of locks only
		"redis://h?tiemout=1s":                    `unknown parameter "tiemout"`,
		"redis://h?server_name=n":                 "want rediss://",
		"redis://h?ca=" + empty:                   "want rediss://",
		"rediss://h?ca=" + empty:                  "no certificate in PEM",
		"rediss://h?ca=/nowhere/at/all":           "ca",
		"rediss://h?cert=/nowhere&key=/nowhere":   "cert and key",
		"rediss://h?skip_verify=perhaps":          "skip_verify",
		"redis+sentinel://h":                      "name the master",
		"redis+sentinel:///m":                     "names no host",
		"redis+sentinel://h/m/x":                  "want a number",
		"redis+cluster://":                        "names no host",
		"redis+cluster://a,,b":                    "names no host",
		"redis+cluster://a/1":                     "0 on a cluster",
		"redis://me:a/b@h":                        "%2F", // what follows is no path
		"redis://me@x:12/34@h":                    "%2F",
		"redis://:12?34@h":                        "%2F",
		"redis://:12#34@h":                        "%2F",
	} {
		_, err := parse(raw)
		if raw == "redis://me:a/b@h" { // net/url finds that out by itself
			if err == nil {
				t.Errorf("%s: no error", raw)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", raw, err, says)
		}
	}
}

const mark = "S3CR3T"

// secretive checks that a password whose ends are marked shows in no error, written as it should be
// and as it should not.
func secretive(t *testing.T, middle string) {
	t.Helper()
	password := mark + middle + mark
	for _, scheme := range []string{"redisurl", "redisurl+cluster", "redisurl+sentinel"} {
		for _, behind := range []string{"", "/x", "/m/x", "?timeout=x", "?nobody=1", ":x", ",b"} {
			for _, raw := range []string{
				(&url.URL{Scheme: scheme, User: url.UserPassword("me", password), Host: "host"}).String() + behind,
				scheme + "://me:" + password + "@host" + behind,
				scheme + "://:" + password + "@host:1" + behind,
				scheme + "://me@there:" + password + "@host" + behind,
			} {
				_, err := driver.OpenURL(context.Background(), raw)
				if err != nil && strings.Contains(err.Error(), mark) {
					t.Errorf("%q: the error tells of the password: %v", raw, err)
				}
				if shown := driver.Redact(raw); strings.Contains(shown, mark) {
					t.Errorf("%q: shown as %q", raw, shown)
				}
			}
		}
	}
}

func init() {
	for _, scheme := range []string{"redisurl", "redisurl+cluster", "redisurl+sentinel"} {
		driver.Register(scheme, func(_ context.Context, u *url.URL) (driver.Driver, error) {
			p := driver.NewParams(u)
			if _, err := ParseURL(u, p); err != nil {
				return nil, err
			}
			return nil, p.Err()
		})
	}
}

var middles = []string{
	"", "a", "0@#0", "/", "?", "#", "@", ":", "%", "%zz", "%2", " ", "\n", "\x00", "a/b", "1/2", "1?2", "1#2", "@1/2", "1@2?3", "1@2#3", ",", "[", "]", "[::1]", "\"", "'",
	"\\", "&", "=", "?timeout=", "?db=", "/0?db=", "?a=1&b=2", "é", "\xff", "+", ";", "//", "@@", "?x=%zz",
}

func TestParseURL_TellsNoPassword(t *testing.T) {
	t.Parallel()
	for _, middle := range middles {
		secretive(t, middle)
	}
}

func FuzzParseURL(f *testing.F) {
	for _, middle := range middles {
		f.Add(middle)
	}
	f.Fuzz(secretive)
}
