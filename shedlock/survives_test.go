package shedlock_test

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest"
)

// What claims survive is what the server's settings say of a commit that was answered.
func TestSettingsDecideWhatClaimsSurvive(t *testing.T) {
	t.Parallel()
	process := driver.Survival{Process: true}
	restart := driver.Survival{Process: true, Restart: true}
	machine := driver.Survival{Process: true, Restart: true, Machine: true}
	for _, c := range []struct {
		name string
		on   func(t drivertest.T, args ...string) *database
		args []string
		want driver.Survival
	}{
		{"postgres as shipped", onPostgres, nil, machine},
		{"postgres without fsync", onPostgres, []string{"-c", "fsync=off"}, restart},
		{"postgres without full_page_writes", onPostgres, []string{"-c", "full_page_writes=off"}, restart},
		{"postgres without synchronous_commit", onPostgres, []string{"-c", "synchronous_commit=off"}, process},
		{"mariadb as shipped", onMariaDB, nil, machine},
		{"mariadb flushing once a second", onMariaDB, []string{"--innodb-flush-log-at-trx-commit=2"}, restart},
		{"mariadb writing once a second", onMariaDB, []string{"--innodb-flush-log-at-trx-commit=0"}, process},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.on(t, c.args...)
			d, err := driver.OpenURL(t.Context(), s.url(s.Addr()))
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Traits().Survives; got != c.want {
				t.Errorf("claims survive %+v, want %+v", got, c.want)
			}
			if err := d.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
