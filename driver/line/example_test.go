package line_test

import (
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// arrive puts a claim at the end of the line, or finds it there, and returns its state.
func arrive(l *line.Line, session string, c driver.Claim, now time.Time) (driver.Grant, error) {
	if l.Find(c.ID) < 0 {
		mine := line.New(session, c)
		if err := l.Admits(mine); err != nil {
			return driver.Grant{}, err
		}
		if !c.Queue && !l.Fits(mine) {
			return l.Denied(line.Claim.Describe), nil
		}
		l.Join(mine, now)
		if _, err := l.Settle(now, driver.Draw); err != nil {
			return driver.Grant{}, err
		}
	}
	return l.Grant(l.Find(c.ID), line.Claim.Describe), nil
}

func Example() {
	now := time.Unix(1_700_000_000, 0) // the store's clock
	l := &line.Line{Name: "coupons/42"}
	for _, id := range []string{"ann", "bob"} {
		c := driver.Claim{Name: l.Name, ID: id, Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
		g, err := arrive(l, "session of "+id, c, now)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, "holds:", g.Held)
	}
	l.Leave("ann")
	granted, err := l.Settle(now, driver.Draw)
	if err != nil {
		log.Fatal(err)
	}
	for _, i := range granted {
		fmt.Println(l.Claims[i].ID, "is next") // the one to wake
	}
	// Output:
	// ann holds: true
	// bob holds: false
	// bob is next
}
