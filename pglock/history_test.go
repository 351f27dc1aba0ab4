package pglock_test

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/storetest"
)

func TestRandomHistory(t *testing.T) {
	t.Parallel()
	s := migrated(t)
	d, err := driver.OpenURL(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close(t.Context())
	p := pool(t, s.URL())
	storetest.History(t, []driver.Driver{d}, func(session string) {
		if _, err := p.Exec(t.Context(), "update interlock.session set until = 0 where id = $1", session); err != nil {
			t.Fatal(err)
		}
	})
}
