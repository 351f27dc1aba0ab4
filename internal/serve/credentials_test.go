package serve

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/web"
)

// guarded returns credentials of a file of tokens, at a time that the test moves.
func guarded(t *testing.T, o *Options, tokens string) (c *credentials, now *time.Time) {
	t.Helper()
	if tokens != "" {
		o.TokenFile = write(t, filepath.Join(t.TempDir(), "tokens"), tokens)
	}
	c, err := newCredentials(fill(o), []byte("a key of the process"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	c.now = func() time.Time { return at }
	return c, &at
}

const someTokens = `
token=anas-token-0123456789 name=ana read=* break=coupons/
token=cis-token-0123456789 name=ci read=jobs/ expires=2026-11-30
token=prometheus-0123456789 name=prometheus
`

// someCerts are for a server with --client-ca.
const someCerts = `
cert=web-7.example.org name=web-7 read=web/ break=web/
cert=spiffe://example.org/old name=old read=* expires=2026-01-01
`

// Who makes a request is who its header says, its certificate, or the cookie of a login; and what
// is wrong is said without saying what would do.
func TestWhoAsks(t *testing.T) {
	t.Parallel()
	ana := web.Principal{Name: "ana", Read: []string{""}, Break: []string{"coupons/"}}
	header := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Authorization"] = values }
	}
	cert := func(dns string, uris ...string) func(*http.Request) {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: "cn of " + dns}, DNSNames: []string{dns}}
		for _, u := range uris {
			at, _ := url.Parse(u)
			c.URIs = append(c.URIs, at)
		}
		return func(r *http.Request) { r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{c}}} }
	}
	both := func(fs ...func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			for _, f := range fs {
				f(r)
			}
		}
	}
	c, _ := guarded(t, &Options{AllowBreak: true, TLSCert: "x", ClientCA: "x"}, someTokens+someCerts)
	for name, request := range map[string]struct {
		with func(*http.Request)
		want web.Principal
		says string
	}{
		"nothing":                             {func(*http.Request) {}, web.Principal{}, "no credential came"},
		"a token":                             {header("Bearer anas-token-0123456789"), ana, ""},
		"in small letters":                    {header("bearer anas-token-0123456789"), ana, ""},
		"an unknown token":                    {header("Bearer anas-token-012345678"), web.Principal{}, "not known"},
		"a longer token":                      {header("Bearer anas-token-01234567890"), web.Principal{}, "not known"},
		"no token":                            {header("Bearer "), web.Principal{}, "not understood"},
		"an empty header":                     {header(""), web.Principal{}, "not understood"},
		"two tokens":                          {header("Bearer anas-token-0123456789", "Bearer cis-token-0123456789"), web.Principal{}, "not understood"},
		"a token and a word":                  {header("Bearer anas-token-0123456789 x"), web.Principal{}, "not understood"},
		"Basic":                               {header("Basic YW5hOmFuYXMtdG9rZW4tMDEyMzQ1Njc4OQ=="), web.Principal{}, "not understood"},
		"the hash":                            {header("Bearer " + hashOf("anas-token-0123456789")), web.Principal{}, "not known"},
		"a hash of zeros":                     {header("Bearer " + strings.Repeat("0", 64)), web.Principal{}, "not known"},
		"no rights":                           {header("Bearer prometheus-0123456789"), web.Principal{Name: "prometheus"}, ""},
		"a certificate":                       {cert("web-7.example.org"), web.Principal{Name: "web-7", Read: []string{"web/"}, Break: []string{"web/"}}, ""},
		"another one":                         {cert("web-8.example.org"), web.Principal{}, "certificate names nobody"},
		"one that is over":                    {cert("x", "spiffe://example.org/old"), web.Principal{}, "ended on 2026-01-02"},
		"a good certificate, and a bad token": {both(cert("web-7.example.org"), header("Bearer nobodys-token-0123")), web.Principal{}, "not known"},
		"in the address": {func(r *http.Request) {
			r.URL.RawQuery = "token=anas-token-0123456789&access_token=anas-token-0123456789"
		}, web.Principal{}, "no credential came"},
		"a cookie of the token itself": {func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: c.cookieName("locks.example.org"), Value: "anas-token-0123456789"})
		}, web.Principal{}, "log in again"},
	} {
		r := httptest.NewRequest(http.MethodGet, "https://locks.example.org/", nil)
		r.TLS = nil
		request.with(r)
		got, err := c.authenticate(r, true)
		if !reflect.DeepEqual(got, request.want) || (err == nil) != (request.says == "") || err != nil && !strings.Contains(err.Error(), request.says) {
			t.Errorf("%s: %+v and %v, want %+v and %q", name, got, err, request.want, request.says)
		}
		if err != nil && !errors.Is(err, web.ErrUnauthenticated) {
			t.Errorf("%s: %v is not what package web knows", name, err)
		}
	}
}

// Without --allow-break nobody may break anything, whatever the file says; without any credential
// configured everybody is local.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	for _, c := range []struct {
		o      Options
		tokens string
		want   web.Principal
	}{
		{Options{}, "", web.Principal{Name: "local", Read: []string{""}}},
		{Options{AllowBreak: true}, "", web.Principal{Name: "local", Read: []string{""}, Break: []string{""}}},
		{Options{}, someTokens, web.Principal{Name: "ana", Read: []string{""}}},
		{Options{AllowBreak: true}, someTokens, web.Principal{Name: "ana", Read: []string{""}, Break: []string{"coupons/"}}},
	} {
		who, _ := guarded(t, &c.o, c.tokens)
		r.Header.Set("Authorization", "Bearer anas-token-0123456789")
		if got, err := who.authenticate(r, true); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v, %v, want %+v", got, err, c.want)
		}
	}
	// Certificates without a file of tokens: the owner of one of the CA's may look.
	who, _ := guarded(t, &Options{ClientCA: "x", AllowBreak: true}, "")
	r.Header.Del("Authorization")
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "ops"}}}}}
	if got, err := who.authenticate(r, true); err != nil || got.Name != "ops" || len(got.Read) != 1 || len(got.Break) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	r.TLS.VerifiedChains[0][0].Subject.CommonName = "line\nbreak"
	if got, err := who.authenticate(r, true); err == nil {
		t.Errorf("a name that would break a line of the log: %+v", got)
	}
}

// A certificate is good for as long as it lasts and its authority is one of the file's, whatever
// its connection has shown as it began.
func TestCertificatesEnd(t *testing.T) {
	t.Parallel()
	c, now := guarded(t, &Options{ClientCA: "x"}, "")
	ca, other := makeCA(t, t.TempDir()), makeCA(t, t.TempDir())
	pool := ca.pool
	c.authorities = func() *x509.CertPool { return pool }
	cert, err := x509.ParseCertificate(ca.client(t, "ops").Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "https://locks.example.org/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert, ca.cert}}}
	ask := func(what string, good bool) {
		t.Helper()
		if who, err := c.authenticate(r, true); (err == nil) != good || err != nil && !errors.Is(err, web.ErrUnauthenticated) {
			t.Errorf("%s: %+v and %v", what, who, err)
		}
	}
	*now = cert.NotAfter.Add(-time.Minute)
	ask("while it lasts", true)
	*now = cert.NotAfter.Add(time.Minute)
	ask("after its end", false)
	*now = cert.NotAfter.Add(-time.Minute)
	pool = other.pool
	ask("its authority is out of the file", false)
}

// A form that is empty is nobody's login, and no token is that could not stand in a header,
// whatever hash the file has.
func TestNothingIsNoToken(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", " ", "a token with blanks", "line\nbreak"} {
		entries := &table{entries: []*entry{{hash: sha256.Sum256([]byte(token)), name: "ana", read: []string{""}}}}
		if e, err := entries.find(token, time.Now()); err == nil {
			t.Errorf("token %q is that of %s", token, e.name)
		}
	}
}

// A token is good until the end of its last day, and its owner is told why not from then on; a
// login ends with it.
func TestTokensExpire(t *testing.T) {
	t.Parallel()
	c, now := guarded(t, &Options{}, someTokens)
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
	r.Header.Set("Authorization", "Bearer cis-token-0123456789")
	*now = time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC)
	if _, err := c.authenticate(r, false); err != nil {
		t.Errorf("on its last day: %v", err)
	}
	e, err := c.table().find("cis-token-0123456789", *now)
	if err != nil {
		t.Fatal(err)
	}
	cookie := c.login("localhost", e)
	if cookie.MaxAge != 1 {
		t.Errorf("the login lasts for %d s, want the second that is left", cookie.MaxAge)
	}
	*now = now.Add(time.Second)
	_, err = c.authenticate(r, false)
	if err == nil || !strings.Contains(err.Error(), "the token of ci expired on 2026-12-01T00:00:00Z") {
		t.Errorf("after it: %v", err)
	}
	r.Header.Del("Authorization")
	r.AddCookie(cookie)
	if _, err = c.authenticate(r, true); err == nil {
		t.Error("the login outlives its token")
	}
}

// A login is good for pages until it is over, its token is taken away, or the server starts anew;
// and no cookie is that was made by hand.
func TestLoginsAreSealed(t *testing.T) {
	t.Parallel()
	c, now := guarded(t, &Options{Prefix: "/locks", AllowBreak: true}, someTokens)
	e, err := c.table().find("anas-token-0123456789", *now)
	if err != nil {
		t.Fatal(err)
	}
	cookie := c.login("localhost", e)
	if cookie.Path != "/locks/" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure || cookie.MaxAge != 8*3600 || cookie.Name != "interlock" {
		t.Errorf("cookie %+v", cookie)
	}
	if strings.Contains(cookie.Value, "ana") {
		t.Errorf("the cookie has the token: %s", cookie.Value)
	}
	ask := func(value string, pages bool) error {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/locks/", nil)
		r.AddCookie(&http.Cookie{Name: "interlock", Value: value})
		who, err := c.authenticate(r, pages)
		if err == nil && (who.Name != "ana" || len(who.Break) != 1) {
			t.Errorf("the login is of %+v", who)
		}
		return err
	}
	if err := ask(cookie.Value, true); err != nil {
		t.Errorf("a good login: %v", err)
	}
	if err := ask(cookie.Value, false); err == nil {
		t.Error("a login is good for programs, too, which a browser would send it to by itself")
	}
	for i := range cookie.Value {
		b := []byte(cookie.Value)
		b[i] = map[bool]byte{true: 'A', false: 'B'}[b[i] != 'A']
		if err := ask(string(b), true); err == nil && i < len(b)-1 { // the last one has unused bits
			t.Errorf("a login with another character %d is good", i)
		}
	}
	for _, value := range []string{"", "x", cookie.Value[:len(cookie.Value)-4], cookie.Value + "AAAA", strings.Repeat("A", len(cookie.Value))} {
		if err := ask(value, true); err == nil {
			t.Errorf("login %q is good", value)
		}
	}
	*now = now.Add(loginLasts - time.Second)
	if err := ask(cookie.Value, true); err != nil {
		t.Errorf("before its end: %v", err)
	}
	*now = now.Add(time.Second)
	if d := isDenial(ask(cookie.Value, true)); d == nil || d.who != "ana" {
		t.Errorf("a login after its end: %+v, want a denial that knows whose it was", d)
	}
	*now = now.Add(-time.Hour)

	// The token is taken out of the file.
	write(t, c.opts.TokenFile, "token=another-token-0123456 name=ana read=* break=coupons/\n")
	c.file.reload()
	if err := ask(cookie.Value, true); err == nil {
		t.Error("a login is good whose token was taken away")
	}
	write(t, c.opts.TokenFile, someTokens)
	c.file.reload()
	if err := ask(cookie.Value, true); err != nil {
		t.Errorf("the token is back: %v", err)
	}
	c.key = []byte("another process")
	c.file.reload()
	if err := ask(cookie.Value, true); err == nil {
		t.Error("a login is good whose server has ended")
	}

	// Over https the browser keeps it there.
	secure, _ := guarded(t, &Options{BehindTLSProxy: true}, someTokens)
	if cookie := secure.login("localhost", e); cookie.Name != "__Secure-interlock" || !cookie.Secure || cookie.Path != "/" {
		t.Errorf("behind TLS: %+v", cookie)
	}
}

// Browsers know no ports and send whatever cookie has a path that fits: logins at other servers of
// the host are no login here, and harm none.
func TestLoginsBesideOthers(t *testing.T) {
	t.Parallel()
	c, now := guarded(t, &Options{Prefix: "/locks"}, someTokens)
	login := func(host, token string) string {
		e, err := c.table().find(token, *now)
		if err != nil {
			t.Fatal(err)
		}
		cookie := c.login(host, e)
		return cookie.Name + "=" + cookie.Value
	}
	const host = "127.0.0.1:7070"
	ana, ci, elsewhere := login(host, "anas-token-0123456789"), login(host, "cis-token-0123456789"), login("127.0.0.1:7071", "cis-token-0123456789")
	for _, request := range []struct {
		cookies, want string
	}{
		{ana, "ana"},
		{elsewhere, ""},
		{ana + "; " + elsewhere, "ana"},
		{"interlock-7070=of-the-server-at-the-root; " + ana, "ana"},
		{ana + "; interlock-7070=" + strings.Repeat("A", 75), "ana"},
		{ana + "; " + ana, "ana"},
		{ana + "; " + ci, ""}, // one of them was planted, by another server of this host
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/locks/", nil)
		r.Header.Set("Cookie", request.cookies)
		if who, err := c.authenticate(r, true); who.Name != request.want || (err == nil) != (request.want != "") {
			t.Errorf("%s: %q and %v, want %q", request.cookies, who.Name, err, request.want)
		}
	}
}

// The file is read again when it has changed. One that is wrong, or open to others, changes
// nothing, and the log says so without quoting it.
func TestTokensAreReadAgain(t *testing.T) {
	t.Parallel()
	log := &lines{}
	c, now := guarded(t, &Options{Logger: slog.New(slog.NewTextHandler(log, nil))}, someTokens)
	knows := func(token string) bool {
		c.file.mu.Lock()
		c.file.looked = time.Time{} // a second later
		c.file.mu.Unlock()
		_, err := c.table().find(token, *now)
		return err == nil
	}
	const added = "added-token-0123456789"
	if !knows("anas-token-0123456789") || knows(added) {
		t.Fatal("the tokens are not those of the file")
	}
	write(t, c.opts.TokenFile, someTokens+"token="+added+" name=new read=*\n")
	if !knows(added) {
		t.Error("a token that was added is not known")
	}
	write(t, c.opts.TokenFile, "token="+added+"\n") // no name
	if !knows(added) || !knows("anas-token-0123456789") {
		t.Error("a file that is wrong has locked people out")
	}
	if !log.has("line 1: no name=") || log.has(added) {
		t.Errorf("the log says\n%s", log)
	}
	write(t, c.opts.TokenFile, someTokens)
	if knows(added) {
		t.Error("a token that was taken out is known")
	}
	if err := os.Chmod(c.opts.TokenFile, 0o644); err != nil {
		t.Fatal(err)
	}
	c.file.reload()
	if !log.has("mode 0644") {
		t.Errorf("a file that others may read: the log says\n%s", log)
	}
	// A new file at its place, of the same size and time.
	other := c.opts.TokenFile + ".new"
	write(t, other, strings.Replace(someTokens, "anas-token", "bobs-token", 1))
	info, err := os.Stat(c.opts.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chtimes(other, info.ModTime(), info.ModTime()), os.Rename(other, c.opts.TokenFile)); err != nil {
		t.Fatal(err)
	}
	if !knows("bobs-token-0123456789") || knows("anas-token-0123456789") {
		t.Error("a file that was moved to its place is not read")
	}
}

// A client that tries tokens is answered by 429 after ten in a minute, by address.
func TestAttempts(t *testing.T) {
	t.Parallel()
	at := time.Now()
	a := newAttempts(func() time.Time { return at })
	for i := range attemptsMost + 2 {
		if n := a.add("10.0.0.1"); n != i+1 {
			t.Errorf("attempt %d is counted as %d", i+1, n)
		}
	}
	if n := a.add("10.0.0.2"); n != 1 {
		t.Errorf("another address has %d", n)
	}
	at = at.Add(time.Minute)
	if n := a.add("10.0.0.1"); n != 1 {
		t.Errorf("a minute later it has %d", n)
	}
	for i := range 2 * attemptsFrom {
		a.add("address " + string(rune('a'+i%26)) + time.Duration(i).String())
	}
	if len(a.by) > attemptsFrom+1 {
		t.Errorf("%d addresses are kept", len(a.by))
	}
}
