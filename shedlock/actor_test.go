package shedlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storetest"
)

const soon = 30 * time.Second // for what may take a moment

// opened is the store, by its URL with more parameters. A server that is slow is none that is away.
func opened(t *testing.T, s *database, parameters ...string) driver.Driver {
	t.Helper()
	return openedAt(t, s, s.Addr(), append(parameters, "timeout="+soon.String())...)
}

// openedAt is the store over a wire.
func openedAt(t *testing.T, s *database, addr string, parameters ...string) driver.Driver {
	t.Helper()
	url := s.url(addr)
	for _, p := range parameters {
		if sep := "&"; strings.Contains(url, "?") {
			url += sep + p
		} else {
			url += "?" + p
		}
	}
	return storetest.Opened(t, url)
}

var mutex = storetest.Tries
