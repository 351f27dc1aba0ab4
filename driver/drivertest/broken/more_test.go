package broken

import (
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver/drivertest"
)

// A driver without a law is broken, and no law says so yet; it says what a law would have to do.
// One that a law convicts each time has that law and what the report says in its place. By chance
// some are convicted now and then.
func TestUnnoticed(t *testing.T) {
	for _, d := range more() {
		if known := d.Breaks != "" && d.Want != ""; known != (d.Law == "") {
			t.Errorf("%s: want either a law or what it breaks and what a law would have to do", d.Name)
		}
		if d.Law != "" || testing.Short() {
			continue // the long run judges it
		}
		t.Run(d.Name, func(t *testing.T) {
			for _, law := range drivertest.Laws() {
				var v drivertest.Verdict
				synctest.Test(t, func(*testing.T) { v = drivertest.Judge(law, d.Harness) })
				if v.Convicted() {
					t.Logf("%s is convicted now: if that is no chance, move it to the convicted ones:\n%s", d.Name, v)
				}
			}
		})
	}
}
