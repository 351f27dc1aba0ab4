package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
)

// strange are names that a page could take for something else than text, or that are too long for a
// line of it.
var strange = []string{
	`coupons/"><img src=x onerror=alert(1)><script>alert(2)</script>`,
	`coupons/'onmouseover='alert(3)`,
	"coupons/\u202egnp.\u0000\r\n\t",
	"coupons/größe/日本語/🔒",
	"coupons/" + strings.Repeat("very-long-", 50),
	"coupons/../../%2e%2e/?a=b&c=d#e",
}

// many is how many stand in line for coupons/sale.
const many = 130

// scene fills a store with all that a page can show of it.
func scene(t *testing.T, url string) driver.Driver {
	t.Helper()
	d := redistest.Open(t, url)
	t.Cleanup(func() { _ = d.Close(t.Context()) })
	claims := func(name string, kind driver.Kind, weight, limit, n int) {
		t.Helper()
		for i := range n {
			owner := driver.Owner{Name: fmt.Sprintf("billing-%d", i+1), Host: "web-7.example.org", User: "deploy", PID: 4000 + i, Program: "billing"}
			s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), Owner: owner, TTL: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			c := driver.Claim{Name: name, ID: driver.NewID(), Kind: kind, Weight: weight, Limit: limit, Queue: true, Note: "the sale of <b>today</b>"}
			if _, err := s.Acquire(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	claims("coupons/42", driver.Mutex, driver.All, driver.All, 3)
	claims("coupons/sale", driver.Mutex, driver.All, driver.All, many)
	claims("coupons/stuck", driver.Mutex, driver.All, driver.All, 2)
	claims("reports/daily", driver.Read, 1, driver.All, 2)
	claims("reports/weekly", driver.Permit, 2, 5, 3)
	for _, name := range strange {
		claims(name, driver.Mutex, driver.All, driver.All, 2)
	}
	looks, ok := d.(driver.Inspector)
	if !ok {
		t.Fatal("the store cannot be looked into")
	}
	l, err := looks.Line(t.Context(), "coupons/stuck")
	if err != nil {
		t.Fatal(err)
	}
	if err := looks.Break(t.Context(), l.Name, l.Claims[0].PublicID, l.Claims[0].Fence, false); err != nil {
		t.Fatal(err)
	}
	return d
}
