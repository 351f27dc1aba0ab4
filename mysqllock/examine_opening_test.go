package mysqllock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
)

// A server that answers and cannot be had locks from is no silent one: what is wrong is a finding,
// for whoever opens it as well.
func TestDoctor_Opening(t *testing.T) {
	t.Parallel()
	s := migrated(t, flushes)
	as := func(user string) string { return strings.Replace(s.URL(), "root@", user+"@", 1) }
	examinetest.Refused(t, "a user that there is not", as("app:secret"), examinetest.Levels{"login": examinetest.Bad})
	execute(t, s, "create user app identified by 'secret'")
	f := examinetest.Refused(t, "a wrong password", as("app:other"), examinetest.Levels{"login": examinetest.Bad})
	if !strings.Contains(f.Mend, "ALTER USER 'app'@'HOST' IDENTIFIED BY") {
		t.Errorf("%+v, want how to give this user another one", f)
	}
	examinetest.Refused(t, "no such database", strings.Replace(s.URL(), "/test", "/other", 1), examinetest.Levels{"database": examinetest.Bad})
	examinetest.Refused(t, "no tables", s.URL()+"?prefix=other_", examinetest.Levels{"tables": examinetest.Bad})
	for _, technique := range []string{"rows", "session", "rowlock"} {
		url := as("app:secret") + "?technique=" + technique
		f := examinetest.Refused(t, technique+" without any right", url, examinetest.Levels{"rights": examinetest.Bad})
		execute(t, s, strings.Split(f.Mend, "; ")...)
		finds(t, technique+" with "+f.Mend, url, nil)
		execute(t, s, "revoke all, grant option from app", "grant select on test.interlock_session to app")
		f = examinetest.Refused(t, technique+" without a right to a table", url, examinetest.Levels{"rights": examinetest.Bad})
		execute(t, s, strings.Split(f.Mend, "; ")...)
		finds(t, technique+" then, with "+f.Mend, url, nil)
		execute(t, s, "revoke all, grant option from app")
	}
	execute(t, s, "alter user app with max_user_connections 1", "grant all on test.* to app")
	other, err := pool(t, as("app:secret")).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	examinetest.Refused(t, "no connection is left", as("app:secret"), examinetest.Levels{"connections": examinetest.Bad})
	_ = other.Close()
	execute(t, s, "set global read_only = 1")
	examinetest.Refused(t, "a server that is read-only", s.URL(), examinetest.Levels{"role": examinetest.Bad})
	if _, err := driver.OpenURL(t.Context(), "mysql://root@127.0.0.1:1/test"); err == nil || errors.As(err, new(*driver.FindingError)) {
		t.Errorf("%v, want no finding of a server that there is not", err)
	}
}
