package pglock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A server that answers and cannot be had locks from is no silent one: what is wrong is a finding,
// for whoever opens it as well.
func TestDoctor_Opening(t *testing.T) {
	t.Parallel()
	s := migrated(t, sound...)
	app := strings.Replace(s.URL(), "postgres@", "app:secret@", 1)
	rest := strings.Replace(s.URL(), "/postgres?", "/other?", 1)
	examinetest.Refused(t, "a role that there is not", app, examinetest.Levels{"login": examinetest.Bad})
	examinetest.Refused(t, "no such database", rest, examinetest.Levels{"database": examinetest.Bad})
	for _, technique := range leases {
		if technique == "session" { // which needs none
			continue
		}
		f := examinetest.Refused(t, technique+" without tables", by(s.URL(), technique)+"&schema=nowhere", examinetest.Levels{"tables": examinetest.Bad})
		if !strings.Contains(f.Mend, "interlock migrate") {
			t.Errorf("%s: %+v", technique, f)
		}
	}
	execute(t, s, "create role app login password 'other'; grant pg_monitor to app")
	for _, technique := range leases {
		f := examinetest.Refused(t, technique+" without rights", by(app, technique), examinetest.Levels{"rights": examinetest.Bad})
		execute(t, s, f.Mend)
		finds(t, technique+" with "+f.Mend, by(app, technique), nil)
		execute(t, s, strings.ReplaceAll(strings.ReplaceAll(f.Mend, "GRANT", "REVOKE"), " TO ", " FROM "))
	}
	execute(t, s, "alter role app connection limit 1")
	other, err := pgx.Connect(t.Context(), app)
	if err != nil {
		t.Fatal(err)
	}
	examinetest.Refused(t, "no connection is left", app, examinetest.Levels{"connections": examinetest.Bad})
	_ = other.Close(context.Background())
	hba := filepath.Join(s.Dir(), "pg_hba.conf")
	text, err := os.ReadFile(hba)
	if err == nil {
		err = os.WriteFile(hba, append([]byte("host all app 127.0.0.1/32 scram-sha-256\nhost all shy 127.0.0.1/32 reject\n"), text...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	reload(t, s)
	f := examinetest.Refused(t, "a wrong password", app, examinetest.Levels{"login": examinetest.Bad})
	if !strings.Contains(f.Mend, `ALTER ROLE "app" PASSWORD`) {
		t.Errorf("%+v, want how to give this role another one", f)
	}
	if _, err := driver.OpenURL(t.Context(), "postgres://127.0.0.1:1/x"); err == nil || errors.As(err, new(*driver.FindingError)) {
		t.Errorf("%v, want no finding of a server that there is not", err)
	}
}

// A standby that is named alone is told from a server that does not answer.
func TestDoctor_OpeningAStandby(t *testing.T) {
	t.Parallel()
	standby := servertest.Standby(t, migrated(t, append(sound, servertest.Replicated...)...))
	for _, technique := range leases {
		examinetest.Refused(t, technique+" on a standby", by(standby.URL(), technique), examinetest.Levels{"role": examinetest.Bad})
	}
}
