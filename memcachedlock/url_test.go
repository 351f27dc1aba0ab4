package memcachedlock_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/memcachedlock"
)

func TestBadURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"memcached://a?colour=red":         "unknown parameter",
		"memcached://a?timeout=-1s":        "want a duration above 0",
		"memcached://a?timeout=5s":         "want at most 3s",
		"memcached://a?layout=remove":      `layout "remove": want hashed or add`,
		"memcached://a,b?layout=add":       "want one",
		"memcached://a,a":                  "want each once",
		"memcached://a:x":                  "",
		"memcached://a:0":                  "want a number from 1 to 65535",
		"memcached://a/path":               "something stands behind the hosts",
		"memcached://a?prefix=a%20b":       "without blanks",
		"memcached://a?prefix=" + longer:   "at most",
		"memcached://app@a":                "want both or none",
		"memcached://app:hunter2%20x@a":    "without blanks",
		"memcached://app:hun@ter2@a":       "",
		"memcached://127.0.0.1:1?prefix=a": "connection refused",
		"memcached+tls://127.0.0.1:1":      "connection refused",
		"memcached://a?ca=/nowhere":        "no such file",
		"memcached://a?server_name=b":      "want memcached+tls://",
	} {
		d, err := driver.OpenURL(t.Context(), text)
		if err == nil {
			_ = d.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.60s: %v; want %q", text, err, want)
		}
	}
}

var longer = strings.Repeat("x", 200)

// A driver says once what it is worth, wherever it was made.
func TestItIsForEfficiency(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	d, err := memcachedlock.New(t.Context(), []string{servertest.Memcached(t).Addr()}, &memcachedlock.Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if strings.Count(said.String(), "efficiency only") != 1 {
		t.Errorf("it says %q", said.String())
	}
	if _, err := d.Open(t.Context(), driver.Spec{TTL: time.Minute}); !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a session of a driver that is closed: %v", err)
	}
}
