package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A person gives the token to a form once. The browser then has a cookie, and no address has the
// token.
func TestLogin(t *testing.T) {
	t.Parallel()
	_, at := newTried(t)
	s := serves(t, &Options{
		Stores: [][2]string{{"one", at}}, Prefix: "/locks", Hosts: []string{"locks.example.org"}, BehindTLSProxy: true,
		TokenFile: write(t, filepath.Join(t.TempDir(), "tokens"), someTokens+"token=late-token-0123456789 name=late read=* expires=2020-01-01\n"),
	})
	browser := []string{"Host", "locks.example.org", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Site", "same-origin"}
	a := s.ask("GET", "/locks/line?store=one&name=a%2Fb", "", browser...)
	next := regexp.MustCompile(`name="next" type="hidden" value="([^"]*)"`).FindStringSubmatch(a.body)
	if a.status != 401 || next == nil || next[1] != "/locks/line?store=one&amp;name=a%2Fb" || !strings.Contains(a.header.Get("WWW-Authenticate"), "Bearer") {
		t.Fatalf("without a login: %d, %v\n%s", a.status, a.header, a.body)
	}
	// What the page loads is there without a login, and its policy lets it load that.
	for _, loads := range regexp.MustCompile(`(?:href|src)="(/locks/[^"]+\.[a-z]+)"`).FindAllStringSubmatch(a.body, -1) {
		b := s.ask("GET", loads[1], "", browser...)
		kind, policy := b.header.Get("Content-Type"), a.header.Get("Content-Security-Policy")
		if b.status != 200 || strings.HasPrefix(kind, "image/") && !strings.Contains(policy, "img-src 'self'") || strings.HasPrefix(kind, "text/css") && !strings.Contains(policy, "style-src 'self'") {
			t.Errorf("%s: %d, %s by the policy %s", loads[1], b.status, kind, policy)
		}
	}
	if !regexp.MustCompile(`<link rel="icon" href="/locks/login.svg"`).MatchString(a.body) {
		t.Errorf("the page has no icon: a browser asks for one at /, which is another's:\n%s", a.body)
	}
	form := func(token, next string) string { return url.Values{"token": {token}, "next": {next}}.Encode() }
	post := func(body string, more ...string) answer {
		t.Helper()
		return s.ask("POST", "/locks/login", body, append(append(slices.Clone(browser), "Content-Type", "application/x-www-form-urlencoded"), more...)...)
	}
	a = post(form(" anas-token-0123456789 ", "/locks/line?store=one&name=a%2Fb"))
	cookie := a.header.Get("Set-Cookie")
	if a.status != 303 || a.header.Get("Location") != "/locks/line?store=one&name=a%2Fb" ||
		!regexp.MustCompile(`^__Secure-interlock=[\w-]{75}; Path=/locks/; Max-Age=28800; HttpOnly; Secure; SameSite=Strict$`).MatchString(cookie) {
		t.Fatalf("the login: %d, %v\n%s", a.status, a.header, a.body)
	}
	cookie, _, _ = strings.Cut(cookie, ";")
	if a = s.ask("GET", "/locks/", "", append(browser, "Cookie", cookie)...); a.status == 401 || a.status == 421 {
		t.Errorf("after the login: %d\n%s", a.status, a.body)
	}
	if a = s.ask("GET", "/locks/login", "", append(browser, "Cookie", cookie)...); a.status != 200 || !strings.Contains(a.body, "logged in as <b>ana</b>") {
		t.Errorf("the page of the login then: %d\n%s", a.status, a.body)
	}
	// A browser sends the cookie wherever a link leads: it is good for no program's address.
	for _, path := range []string{"/locks/v1/lines", "/locks/metrics", "/metrics"} {
		if a = s.ask("GET", path, "", "Host", "locks.example.org", "Cookie", cookie); a.status != 401 {
			t.Errorf("%s with the cookie alone: %d", path, a.status)
		}
	}

	for _, c := range []struct {
		what   string
		a      answer
		status int
		says   string
	}{
		{"a wrong token", post(form("nobodys-token-0123", "/locks/")), 401, "The token is not known here."},
		{"none", post(form("", "/locks/")), 401, "The token is not known here."},
		{"one that is over", post(form("late-token-0123456789", "/locks/")), 401, "The token of late expired on 2020-01-02"},
		{"a form of another site", post(form("anas-token-0123456789", "/"), "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"), 403, "cross-origin"},
		{"a form that is none", post("%zz=1"), 400, "bad-request"},
		{"too much", post("token=" + strings.Repeat("a", maxBody)), 413, "too-large"},
		{"JSON", s.ask("POST", "/locks/login", `{"token":"anas-token-0123456789"}`, append(browser, "Content-Type", "application/json")...), 415, "media-type"},
		{"by another name", s.ask("POST", "/locks/login", form("anas-token-0123456789", "/"), "Host", "evil.example", "Content-Type", "application/x-www-form-urlencoded"), 421, "wrong-host"},
		{"by PUT", s.ask("PUT", "/locks/login", "", browser...), 405, "method"},
		{"in the address", s.ask("POST", "/locks/login?token=anas-token-0123456789", "", append(browser, "Content-Type", "application/x-www-form-urlencoded")...), 401, "not known"},
	} {
		if c.a.status != c.status || !strings.Contains(c.a.body, c.says) || c.a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v\n%s, want %d and %q", c.what, c.a.status, c.a.header, c.a.body, c.status, c.says)
		}
	}
	// The form leads to no other site.
	for _, next := range []string{"https://evil.example/", "//evil.example/", "/\\evil.example", "/locks//evil.example\\", "javascript:alert(1)", "/elsewhere", "", "/locks/\r\nSet-Cookie: a=b", "http:/locks/", "/locks/../evil", "/locks/%2e%2e/evil", "/locks/./../evil", "/locks/.%2E"} {
		a := post(form("anas-token-0123456789", next))
		to, err := url.Parse(a.header.Get("Location"))
		if a.status != 303 || err != nil || to.Host != "" || to.Scheme != "" || !strings.HasPrefix(to.Path, "/locks/") || strings.Contains(to.Path, "..") || strings.HasPrefix(a.header.Get("Location"), "//") {
			t.Errorf("next %q leads to %q (%d)", next, a.header.Get("Location"), a.status)
		}
	}
	a = s.ask("POST", "/locks/logout", "", append(browser, "Cookie", cookie)...)
	if a.status != 303 || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logout: %d %v", a.status, a.header)
	}
	if a = s.ask("POST", "/locks/logout", "", "Host", "locks.example.org", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("logout by another site: %d", a.status)
	}

	// Ten wrong ones in a minute are enough; with the right one one gets in all the same.
	wrong := func() int {
		return s.ask("GET", "/metrics", "", "Host", "locks.example.org", "Authorization", "Bearer nobodys-token-0123").status
	}
	eventually(t, "too many", func() bool { return wrong() == 429 })
	if a := s.ask("GET", "/metrics", "", "Host", "locks.example.org", "Authorization", "Bearer prometheus-0123456789"); a.status != 200 {
		t.Errorf("the right one: %d", a.status)
	}
	for _, secret := range []string{"anas-token-0123", "nobodys-token", "late-token", strings.SplitN(cookie, "=", 2)[1]} {
		if s.log.has(secret) {
			t.Errorf("the log has %s:\n%s", secret, s.log)
		}
	}
}

// Attempts are counted by the address of the client; of IPv6, of which a machine has as many as it
// likes, by its network.
func TestAttemptsAreCountedByNetwork(t *testing.T) {
	t.Parallel()
	a := newAttempts(time.Now)
	for i := range 20 {
		if n := a.add(fmt.Sprintf("2001:db8::%x", i)); n != i+1 {
			t.Errorf("attempt %d of one network is the %d.", i+1, n)
		}
		if n := a.add(fmt.Sprintf("198.51.100.%d", i)); n != 1 {
			t.Errorf("198.51.100.%d has made %d attempts, want 1", i, n)
		}
	}
	if n := a.add("2001:db8:0:1::1"); n != 1 {
		t.Errorf("another network has made %d attempts, want 1", n)
	}
	s := &server{opts: &Options{BehindTLSProxy: true}}
	for said, want := range map[string]string{
		"203.0.113.9": "203.0.113.9", "10.0.0.1, 203.0.113.9": "203.0.113.9", "203.0.113.9:4711": "203.0.113.9", "[2001:db8::1]:4711": "2001:db8::1",
		"2001:db8::1": "2001:db8::1", "unknown": "192.0.2.1", "": "192.0.2.1", "203.0.113.9, ": "192.0.2.1",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil) // from 192.0.2.1
		r.Header.Set("X-Forwarded-For", said)
		if got := s.from(r); got != want {
			t.Errorf("X-Forwarded-For %q is from %s, want %s", said, got, want)
		}
	}
}
