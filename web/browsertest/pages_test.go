package browsertest

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/serve"
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/memcachedlock"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

const limitedToken = "bobs-token-0123456789"

// Every page, in each state that it can be in and at each size and theme, can be read, fits, and
// has no barrier.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	at := "redis://" + servertest.Redis(t).Addr()
	d := scene(t, at)
	file := tokens(t)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("token=" + limitedToken + " name=bob read=reports/\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s := serves(t, serve.Options{
		Stores:     [][2]string{{"main", at}, {"cache", "memcached://" + servertest.Memcached(t).Addr()}},
		AllowBreak: true, TokenFile: file, Hosts: []string{"locks.example.org"},
	})
	l, err := d.(driver.Inspector).Line(t.Context(), "coupons/42")
	if err != nil {
		t.Fatal(err)
	}
	claim := func(i int) string {
		return fmt.Sprintf("&id=%s&fence=%d", l.Claims[i].PublicID, l.Claims[i].Fence)
	}
	type shown struct {
		path   string
		status int64
		words  []string
	}
	pages := []shown{
		{"/", 200, []string{"Names in main", "11 names, 11 held", "coupons/42", "billing-1", "2 read", "4 of 5 permits", "broken", "<b>today</b>"}},
		{"/?store=main&prefix=coupons%2Fs", 200, []string{"2 names with coupons/s", "coupons/sale", "129"}},
		{"/?store=main&prefix=nothing", 200, []string{"0 names with"}},
		{"/?store=main&after=coupons%2Fstuck", 200, []string{"To the start", "reports/daily"}},
		{"/?store=cache", 200, []string{"Names in cache", "0 names"}},
		{"/line?store=main&name=coupons%2F42", 200, []string{"coupons/42", "Kept at", "Held by billing-1", "2 wait", "Break…", "Remove…", "Seen since"}},
		{"/line?store=main&name=coupons%2Fsale", 200, []string{"129 wait", "and 30 more", "Show all"}},
		{"/line?store=main&name=coupons%2Fsale&all=1", 200, []string{"129 wait", "billing-130"}},
		{"/line?store=main&name=coupons%2Fstuck", 200, []string{"Taken away from billing-1", "one waits"}},
		{"/line?store=main&name=reports%2Fdaily", 200, []string{"Held by 2", "read"}},
		{"/line?store=main&name=reports%2Fweekly", 200, []string{"2 of 5 permits"}},
		{"/line?store=main&name=nobody", 200, []string{"Nobody holds it; nobody waits"}},
		{"/line?store=cache&name=nobody", 200, []string{"Nobody holds it"}},
		{"/contention?store=main", 200, []string{"Contention in main", "coupons/sale", "129"}},
		{"/contention?store=cache", 200, []string{"Contention in cache", "Nobody waits"}},
		{"/stores", 200, []string{"Stores", "main", "cache", "It answers.", "Claims survive", "Latency"}},
		{"/break?store=main&name=coupons%2F42" + claim(0), 200, []string{"Break this claim?", "billing-1", "is told first"}},
		{"/break?store=main&name=coupons%2F42" + claim(1), 200, []string{"Take this claim out of the line?", "billing-2"}},
		{"/break?store=main&name=coupons%2F42&id=AAAAAAAAAAAAAAAAAAAAAA&fence=1", 409, []string{"The claim is no longer there", "The line as it stands now"}},
		{"/break?store=main&name=reports%2Fdaily&id=AAAAAAAAAAAAAAAAAAAAAA&fence=0", 403, []string{"Not allowed", "ana may not break that name"}},
		{"/line?store=main", 400, []string{"The request is malformed"}},
		{"/?store=nothing", 404, []string{"There is no such store"}},
		{"/nothing", 404, []string{"There is no such page", "To the names"}},
		{"/login", 200, []string{"You are logged in as ana"}},
	}
	for _, name := range strange {
		c := shown{"/line?store=main&name=" + url.QueryEscape(name), 200, []string{"Held by billing-1", "one waits"}}
		if strings.Contains(name, "\x00") { // it can stand in a store, and none of ours can lock it
			c.status, c.words = 400, []string{"The request is malformed"}
		}
		pages = append(pages, c)
	}
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := open(t, s.at, l)
			p.visit("/login", 200)
			p.sees("Log in")
			p.accessible()
			p.fits()
			p.expect("/login", "status of 401")
			p.login("nobodys-token-0123")
			p.sees("The token is not known here.")
			p.accessible()
			p.login(token)
			p.sees("Names in main")
			for _, c := range pages {
				p.visit(c.path, c.status)
				p.sees(c.words...)
				if faults := p.seen(); len(faults) > 0 {
					t.Fatalf("%s: %s", c.path, strings.Join(faults, "\n"))
				}
				p.accessible()
				p.fits()
				if t.Failed() {
					t.Fatalf("that was %s", c.path)
				}
			}
			bob := open(t, s.at, l)
			bob.visit("/login", 200)
			bob.login(limitedToken)
			bob.sees("2 names, 2 held", "bob, read-only")
			bob.misses("coupons/42")
			bob.accessible()
			bob.visit("/line?store=main&name=reports%2Fdaily", 200)
			bob.misses("Break…")
			bob.visit("/line?store=main&name=coupons%2F42", 403)
			bob.sees("bob may not read that name")
			bob.accessible()
		})
	}
}

// A store that cannot be looked into says so on every page, and has a field for a name.
func TestBlindStore(t *testing.T) {
	t.Parallel()
	h, err := web.New([]web.Store{{Name: "main", URL: "mem:", Driver: struct{ driver.Driver }{memlock.New()}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	for _, l := range []look{deskLight, phoneDark} {
		p := open(t, s.URL, l)
		for _, c := range [][2]string{
			{"/", "This store does not list its names"}, {"/contention", "This store does not list its names"}, {"/line?name=coupons", "The store cannot do that"}, {"/stores", "The store cannot do that"},
		} {
			p.visit(c[0], 200)
			p.sees(c[1], "cannot be looked into")
			p.accessible()
			p.fits()
		}
		p.visit("/", 200)
		p.press("/", "coupons/42", kb.Enter)
		p.sees("coupons/42", "The store cannot do that")
	}
}

// What strangers wrote into a store is text, also where it comes by the stream, and has nothing
// done.
func TestStrangeNamesComeAsText(t *testing.T) {
	t.Parallel()
	at := "redis://" + servertest.Redis(t).Addr()
	s := serves(t, serve.Options{Stores: [][2]string{{"main", at}}})
	p := open(t, s.at, phoneLight)
	p.visit("/", 200)
	p.sees("0 names")
	still := p.stays()
	scene(t, at)
	p.sees("11 names", "<script>alert(2)</script>", "'onmouseover='alert(3)", `\u202egnp.\x00\r\n\t`, "größe/日本語/🔒", "%2e%2e")
	still()
	p.fits()
	p.accessible()
	p.until("nobody made an element of it", `document.querySelector("main img, main script, main b, [onmouseover], [onerror]") === null`)
	p.click(`tbody tr:first-child a`)
	p.sees("Held by billing-1", "one waits")
	redistest.Until(t, patience, "a script of a name has run", func() bool { return len(p.seen()) == 0 })
}

// A visitor who uses keys alone gets everywhere, from the first one on: the skip link, the tabs,
// the theme, the search, the rows.
func TestKeysLeadEverywhere(t *testing.T) {
	t.Parallel()
	at := "redis://" + servertest.Redis(t).Addr()
	scene(t, at)
	s := serves(t, serve.Options{Stores: [][2]string{{"main", at}}})
	p := open(t, s.at, deskLight)
	for _, path := range []string{"/?store=main&prefix=", "/"} {
		p.visit(path, 200)
		p.sees("11 names")
		still := p.stays()
		p.tab("a.skip", "To the content")
		p.until("who tabs to the skip link sees it", `document.activeElement.getBoundingClientRect().height > 10`)
		p.press(kb.Enter)
		p.until("it leads to the content", `location.hash === "#main"`)
		p.press(kb.Tab)
		p.until("then comes the first thing there", focused("#find", ""))
		still()
	}
	p.press("coupons/4", kb.Enter)
	p.sees("1 name with")
	p.press("j")
	p.until("j leads to the first row", focused("tbody a", "coupons/42"))
	p.press("k", "/")
	p.until("/ leads to the search", focused("#find", ""))
	p.press(kb.Escape)
	p.until("Escape leaves it", `document.activeElement === document.body`)

	colour := func() (c string) {
		if err := p.tells(`getComputedStyle(document.body).backgroundColor`, &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	light := colour()
	p.visit("/stores", 200)
	p.tab("header button", "Theme: system")
	p.press(" ", " ")
	p.until("the theme is dark", focused("header button", "Theme: dark"))
	dark := colour()
	if light == dark {
		t.Errorf("dark and light are %s", light)
	}
	p.accessible()
	p.visit("/contention?store=main", 200)
	p.sees("Theme: dark")
	if c := colour(); c != dark {
		t.Errorf("on the next page the theme is %s, want %s as before", c, dark)
	}
	p.tab("nav a", "Stores")
	p.press(kb.Enter)
	p.sees("It answers.")
}

// What changes on a page does not take the keys away from where they go.
func TestKeysStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	at := "redis://" + servertest.Redis(t).Addr()
	first, second := client(t, at, "billing-1"), client(t, at, "billing-2")
	lease := hold(t, first, "coupons/42")
	s := serves(t, serve.Options{Stores: [][2]string{{"main", at}}, AllowBreak: true, TokenFile: tokens(t)})
	p := open(t, s.at, deskLight)
	p.visit("/line?store=main&name=coupons%2F42", 401)
	p.login(token)
	p.sees("Held by billing-1")
	still := p.stays()
	p.tab("#state a", "Refresh")
	next := stand(t, second, "coupons/42")
	p.sees("one waits")
	p.until("the keys go to the link still", focused("#state a", "Refresh"))
	p.tab("tr:nth-child(2) a.danger", "Remove…")
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	lease = redistest.Receive(t, patience, "the lease", next)
	defer func() { _ = lease.Release() }()
	p.sees("Held by billing-2")
	p.until("the keys go to the claim still", focused("tr:first-child a.danger", "Break…"))
	still()

	p.visit("/?store=main", 200)
	p.sees("1 name, 1 held")
	still = p.stays()
	p.tab("tbody a", "coupons/42")
	other := hold(t, first, "coupons/41")
	defer func() { _ = other.Release() }()
	p.sees("2 names, 2 held")
	p.until("the keys go to the name still", focused("tr:nth-child(2) a", "coupons/42"))
	still()
}
