package redisstore

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// What a server answers to an opening has a finding, and stays what it was; what is no answer has
// none.
func TestAnswered(t *testing.T) {
	t.Parallel()
	for text, title := range map[string]string{
		"NOAUTH Authentication required.":                  "login",
		"WRONGPASS invalid username-password pair":         "login",
		"ERR invalid password":                             "login",
		"ERR AUTH <password> called without any password":  "login",
		"NOPERM User app has no permissions to run 'info'": "rights",
		"LOADING Redis is loading the dataset in memory":   "loading",
		"BUSY Redis is busy running a script.":             "busy",
		"ERR max number of clients reached":                "clients",
		"ERR No such master with that name":                "sentinels",
		"MASTERDOWN Link with MASTER is down":              "opening",
	} {
		err := Answered(fmt.Errorf("%w: %w", driver.ErrNotSent, redisconn.ParseError(text)), url.User("app"))
		var found *driver.FindingError
		if !errors.As(err, &found) || found.Finding.Title != title || found.Finding.Level != driver.LevelBad || found.Finding.Mend == "" || !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("%s: %+v, want a finding %q", text, err, title)
		}
	}
	if err := Answered(io.EOF, nil); err != io.EOF { //nolint:errorlint // it is to be the same
		t.Errorf("%v, want what it was", err)
	}
}
