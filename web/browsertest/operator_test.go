package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/serve"
	"github.com/interlock-go/interlock/internal/servertest"
)

// What an operator does, by keys alone, on a Redis: log in, find a name, watch a waiter become the
// holder, break one that is stuck, and see the next one in.
func TestOperator(t *testing.T) {
	t.Parallel()
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			url := "redis://" + servertest.Redis(t).Addr()
			s := serves(t, serve.Options{Stores: [][2]string{{"main", url}}, AllowBreak: true, TokenFile: tokens(t)})
			first, second, third := client(t, url, "billing-1"), client(t, url, "billing-2"), client(t, url, "billing-3")
			lease := hold(t, first, "coupons/42")
			defer func() { _ = lease.Release() }()
			report := hold(t, third, "reports/daily")
			defer func() { _ = report.Release() }()

			p := open(t, s.at, l)
			p.visit("/", 401)
			p.accessible()
			p.login(token)

			p.sees("Names in main", "2 names, 2 held", "coupons/42", "reports/daily", "ana, may break")
			p.accessible()
			p.fits()
			p.press("/")
			p.until("the keys go to the search", focused("#find", ""))
			p.press("coupons/", kb.Enter)
			p.sees("1 name with", "coupons/42")
			p.misses("reports/daily")
			p.press("j")
			p.until("the keys go to the name", focused("a", "coupons/42"))
			p.marked()
			p.press(kb.Enter)

			p.sees("Held by billing-1", "nobody waits")
			still := p.stays()
			next := stand(t, second, "coupons/42")
			p.sees("one waits", "billing-2")
			p.accessible()
			if err := lease.Release(); err != nil {
				t.Fatal(err)
			}
			stuck := redistest.Receive(t, patience, "the lease", next)
			p.sees("Held by billing-2", "nobody waits", "has it no more")
			p.until("whoever only hears is told", `document.getElementById("told").innerText.includes("Held by billing-2")`)

			next = stand(t, third, "coupons/42")
			p.sees("one waits", "billing-3")
			still()
			p.tab("a.danger", "Break…")
			p.press(kb.Enter)
			p.sees("Break this claim?", "billing-2", "is told first", "Its token")
			p.accessible()
			p.fits()
			p.tab("input[name=reason]", "")
			p.press("it hangs")
			p.tab("input[name=now]", "")
			p.press(" ")
			p.tab("button.danger", "Break")
			p.press(kb.Enter)

			after := redistest.Receive(t, patience, "the next lease", next)
			defer func() { _ = after.Release() }()
			p.sees("Held by billing-3", "ana broke the claim of billing-2", "at once (it hangs): broken")
			p.accessible()
			p.fits()
			<-stuck.Context().Done()
			if s.log.line("web: break", "by=ana", "now=true", `reason="it hangs"`, "owner=\"billing-2", "outcome=broken") == "" {
				t.Errorf("the log does not say who broke it:\n%s", s.log.text.String())
			}
			_ = stuck.Release()
		})
	}
}

// Without scripts all is there: what has changed by a link, and what is still to come by the page
// itself.
func TestWithoutScripts(t *testing.T) {
	t.Parallel()
	redis := servertest.Redis(t)
	url := "redis://" + redis.Addr()
	s := serves(t, serve.Options{Stores: [][2]string{{"main", url}}, AllowBreak: true, TokenFile: tokens(t)})
	first, second := client(t, url, "billing-1"), client(t, url, "billing-2")
	lease := hold(t, first, "coupons/42")
	l := phoneLight
	l.plain = true
	p := open(t, s.at, l)
	p.visit("/", 401)
	p.click("#token")
	p.press(token)
	p.click("form button")
	p.sees("Names in main", "1 name, 1 held", "billing-1")
	var by string
	if err := p.tells(`[...document.querySelectorAll("button")].map((b) => b.innerText).join()`, &by); err != nil || by != "Find" {
		t.Errorf("the buttons are %q, %v: want those that do something without scripts", by, err)
	}
	p.fits()
	p.click("#find")
	p.press("nothing", kb.Enter)
	p.sees("0 names with")
	p.click("nav a") // the names
	p.click("tbody a")
	p.sees("Held by billing-1", "nobody waits")
	next := stand(t, second, "coupons/42")
	redistest.Until(t, patience, "nobody waits", func() bool { return len(redistest.Claims(t, url, "coupons/42")) == 2 })
	p.click("#state a")
	p.sees("one waits", "billing-2")
	p.fits()

	p.click("a.danger")
	p.sees("Break this claim?", "is told first")
	p.click("button.danger")
	p.sees("ana broke the claim of billing-1")
	<-lease.Context().Done()
	_ = lease.Release()
	got := redistest.Receive(t, patience, "the next lease", next)
	defer func() { _ = got.Release() }()
	p.click("#state a")
	p.sees("Held by billing-2")

	p.click("nav li:nth-child(2) a")
	p.sees("Contention in main", "Nobody waits")
	p.fits()
	p.click("nav li:nth-child(3) a")
	p.sees("It answers.", "Claims survive")
	p.fits()

	// A store that is away is said to be, and the page of a name asks again by itself.
	if err := redis.Stop(); err != nil {
		t.Fatal(err)
	}
	p.visit("/line?store=main&name=coupons%2F43", 200)
	p.sees("The store does not answer")
	p.fits()
	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.sees("Nobody holds it; nobody waits")
}
