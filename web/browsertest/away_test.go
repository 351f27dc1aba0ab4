package browsertest

import (
	"testing"

	"github.com/interlock-go/interlock/internal/serve"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A store that goes away while pages are open is said to be away, beside what was seen last, and
// the pages go on by themselves.
func TestStoreGoesAway(t *testing.T) {
	t.Parallel()
	for _, l := range []look{deskLight, phoneDark} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			redis := servertest.Redis(t)
			url := "redis://" + redis.Addr()
			s := serves(t, serve.Options{Stores: [][2]string{{"main", url}}})
			c := client(t, url, "billing-1")
			lease := hold(t, c, "coupons/42")
			defer func() { _ = lease.Release() }()
			list, line, contention := open(t, s.at, l), open(t, s.at, l), open(t, s.at, l)
			list.visit("/", 200)
			line.visit("/line?store=main&name=coupons%2F42", 200)
			contention.visit("/contention?store=main", 200)
			list.sees("1 name, 1 held", "billing-1")
			line.sees("Held by billing-1")
			contention.sees("Nobody waits")
			still := []func(){list.stays(), line.stays(), contention.stays()}

			if err := redis.Stop(); err != nil {
				t.Fatal(err)
			}
			list.sees("The list could not be read since", "coupons/42", "billing-1")
			line.sees("The store does not answer since", "Held by billing-1")
			contention.sees("The list could not be read since")
			stores, late := open(t, s.at, l), open(t, s.at, l)
			stores.visit("/stores", 200)
			stores.sees("The store does not answer since")
			late.visit("/line?store=main&name=coupons%2F43", 200)
			late.sees("The store does not answer")
			still = append(still, late.stays())
			for _, p := range []*page{list, line, contention, stores, late} {
				p.accessible()
				p.fits()
			}

			if err := redis.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			list.misses("The list could not be read")
			line.misses("The store does not answer")
			contention.misses("The list could not be read")
			late.misses("The store does not answer")
			late.sees("Nobody holds it; nobody waits")
			for _, f := range still {
				f()
			}
			stores.visit("/stores", 200)
			stores.sees("It answers.")
		})
	}
}

// A server that goes away while a page is open is said to be away, and the page goes on by itself.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	for _, l := range []look{deskDark, phoneLight} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			url := "redis://" + servertest.Redis(t).Addr()
			s := serves(t, serve.Options{Stores: [][2]string{{"main", url}}})
			c := client(t, url, "billing-1")
			p := open(t, s.at, l)
			p.expect("/live", "ERR_") // nobody listens there for now
			p.visit("/line?store=main&name=coupons%2F42", 200)
			p.sees("Nobody holds it")
			still := p.stays()
			s.end()
			p.sees("There is no connection to this server", "Nobody holds it")
			p.accessible()
			p.fits()
			lease := hold(t, c, "coupons/42")
			defer func() { _ = lease.Release() }()
			serves(t, serve.Options{Stores: [][2]string{{"main", url}}, Listen: s.address()})
			p.misses("There is no connection to this server")
			p.sees("Held by billing-1")
			still()
		})
	}
}

// A login that is over while a page is open, here since the server was started anew, is told apart
// from a server that is away.
func TestLoginIsOver(t *testing.T) {
	t.Parallel()
	url := "redis://" + servertest.Redis(t).Addr()
	file := tokens(t)
	s := serves(t, serve.Options{Stores: [][2]string{{"main", url}}, TokenFile: file})
	p := open(t, s.at, deskLight)
	p.visit("/", 401)
	p.login(token)
	p.sees("Names in main", "0 names")
	still := p.stays()
	p.expect("/live", "") // first the connection is refused, then the request
	s.end()
	p.sees("There is no connection to this server")
	serves(t, serve.Options{Stores: [][2]string{{"main", url}}, TokenFile: file, Listen: s.address()})
	p.sees("Your login is over")
	p.accessible()
	still()
	p.click("#trouble a")
	p.login(token)
	p.sees("Names in main", "0 names")
	p.misses("Your login is over")
}
