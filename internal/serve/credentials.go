package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/internal/hosts"
	"github.com/interlock-go/interlock/web"
)

// table is a file of tokens as it was read.
type table struct {
	entries []*entry
	byID    map[cookieID]*entry
}

// credentials decide who makes a request.
type credentials struct {
	opts *Options
	file *watched[*table] // nil without a file
	key  []byte           // of this process, for cookies
	now  func() time.Time

	authorities func() *x509.CertPool // whose certificates are good now; nil without --client-ca
}

// denial is why a request is answered by 401. Its text is for the client, and says nothing that
// only the owner of a token should know.
type denial struct {
	text    string
	counted bool   // it was an attempt with a token that is not known
	who     string // whose credential it was, if it once was one
}

// Error implements error.
func (d *denial) Error() string { return d.text }

// Unwrap makes it what package web expects.
func (d *denial) Unwrap() error { return web.ErrUnauthenticated }

var (
	errNone    = &denial{text: "no credential came with the request: want a header Authorization: Bearer TOKEN"}
	errScheme  = &denial{text: "the header Authorization is not understood: want one, as Authorization: Bearer TOKEN"}
	errUnknown = &denial{text: "the token is not known here", counted: true}
	errCert    = &denial{text: "the client's certificate names nobody who is known here"}
	errOver    = &denial{text: "the client's certificate is over, or its authority is no longer one of --client-ca: connect with another one"}
	errCookie  = &denial{text: "the login is over: log in again"}
)

// errExpired says since when, which the owner of the token may know.
func errExpired(e *entry) *denial {
	return &denial{text: fmt.Sprintf("the token of %s expired on %s: ask for a new one", e.name, e.expires.UTC().Format(time.RFC3339)), who: e.name}
}

func newCredentials(o *Options, key []byte) (*credentials, error) {
	c := &credentials{opts: o, key: key, now: time.Now}
	if o.TokenFile == "" {
		return c, nil
	}
	var err error
	c.file, err = watch(o.Logger, "--token-file", c.read, o.TokenFile)
	if err != nil {
		return nil, &ConfigError{err}
	}
	return c, nil
}

// read reads the file of tokens, which others must not be able to read.
func (c *credentials) read() (*table, error) {
	// O_NONBLOCK, or the opening of a pipe would wait for its writer.
	f, err := os.OpenFile(c.opts.TokenFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("--token-file %s is no file: want one", c.opts.TokenFile)
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return nil, fmt.Errorf("--token-file %s can be read or changed by others (mode %04o): want chmod u=rw,g=r,o= or less", c.opts.TokenFile, mode)
	}
	entries, err := readTokens(f)
	if err != nil {
		return nil, fmt.Errorf("--token-file %s: %w", c.opts.TokenFile, err)
	}
	t := &table{entries: entries, byID: map[cookieID]*entry{}}
	for _, e := range entries {
		switch {
		case e.cert == "":
			t.byID[c.id(e)] = e
		case c.opts.ClientCA == "":
			return nil, fmt.Errorf("--token-file %s: line %d: cert=, and no certificate of a client is looked at: want --client-ca with --tls-cert and --tls-key, or a token in that line", c.opts.TokenFile, e.line)
		}
	}
	return t, nil
}

// authenticate returns who makes a request, or a *denial. A header counts first, since it is there
// on purpose; then a certificate; then the cookie of a login, if cookies is true: a browser sends
// it by itself, so it is good for the pages only.
func (c *credentials) authenticate(r *http.Request, cookies bool) (web.Principal, error) {
	t := c.table()
	switch headers := r.Header.Values("Authorization"); {
	case c.opts.open(): // whatever is sent
		return c.principal(&entry{name: "local", read: []string{""}, brk: []string{""}}), nil
	case len(headers) > 0:
		scheme, token, _ := strings.Cut(headers[0], " ")
		if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") || !isToken(token) {
			return web.Principal{}, errScheme
		}
		e, err := t.find(token, c.now())
		if err != nil {
			return web.Principal{}, err
		}
		return c.principal(e), nil
	case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		if !c.trusted(r.TLS.PeerCertificates) {
			return web.Principal{}, errOver
		}
		e, err := t.ofCertificate(r.TLS.VerifiedChains[0][0], c.now())
		if err != nil {
			return web.Principal{}, err
		}
		return c.principal(e), nil
	case cookies && t != nil:
		if e, err := c.ofCookie(r, t); err != errNone { //nolint:errorlint // it is this one
			return c.principal(e), err
		}
	}
	return web.Principal{}, errNone
}

// trusted reports whether a client's certificate, with those that it came with, is good now. It was
// so when its connection began; but a connection, and a stream on it, lasts for days, in which the
// certificate may end or its authority be taken out of the file.
func (c *credentials) trusted(sent []*x509.Certificate) bool {
	if c.authorities == nil {
		return true
	}
	between := x509.NewCertPool()
	for _, ca := range sent[1:] {
		between.AddCert(ca)
	}
	_, err := sent[0].Verify(x509.VerifyOptions{
		Roots: c.authorities(), Intermediates: between, CurrentTime: c.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

// table returns the tokens, nil if there is no file of them.
func (c *credentials) table() *table {
	if c.file == nil {
		return nil
	}
	return c.file.current()
}

// principal is what an entry may do here.
func (c *credentials) principal(e *entry) web.Principal {
	if e == nil {
		return web.Principal{}
	}
	p := web.Principal{Name: e.name, Read: e.read}
	if c.opts.AllowBreak {
		p.Break = e.brk
	}
	return p
}

// find returns the entry of a token. All are compared, each in constant time, so that the time
// tells nothing. Where there are certificates only, t is nil. An empty field of a form is nobody's
// token, whatever hash is in the file.
func (t *table) find(token string, now time.Time) (found *entry, _ error) {
	if t == nil || !isToken(token) {
		return nil, errUnknown
	}
	hash := sha256.Sum256([]byte(token))
	for _, e := range t.entries {
		if e.cert == "" && subtle.ConstantTimeCompare(hash[:], e.hash[:]) == 1 {
			found = e
		}
	}
	switch {
	case found == nil:
		return nil, errUnknown
	case found.expired(now):
		return nil, errExpired(found)
	}
	return found, nil
}

// ofCertificate returns the entry of a certificate that the client CA has signed. Without a file of
// tokens every one of these may see all names, and break none.
func (t *table) ofCertificate(cert *x509.Certificate, now time.Time) (*entry, error) {
	names := slices.Concat(cert.DNSNames, cert.EmailAddresses)
	for _, u := range cert.URIs {
		names = append(names, u.String())
	}
	names = append(names, cert.Subject.CommonName)
	if t == nil {
		for _, n := range names {
			if isName(n) {
				return &entry{name: n, read: []string{""}}, nil
			}
		}
		return nil, errCert
	}
	for _, e := range t.entries {
		if e.cert != "" && slices.Contains(names, e.cert) {
			if e.expired(now) {
				return nil, &denial{text: fmt.Sprintf("what %s may do here ended on %s", e.name, e.expires.UTC().Format(time.RFC3339)), who: e.name}
			}
			return e, nil
		}
	}
	return nil, errCert
}

// cookieID names an entry in a cookie. A cookie has the entry by which somebody has logged in (not
// its token, nor what could be found out from it), until when, and a seal over both by the key of
// this process. It is over when the token is taken out of the file or expires, and when the server
// is restarted.
type cookieID [16]byte

// loginLasts is how long a login is good for.
const loginLasts = 8 * time.Hour

// id returns the name of an entry in cookies.
func (c *credentials) id(e *entry) (id cookieID) {
	copy(id[:], c.seal("entry", e.hash[:]))
	return id
}

// seal returns a MAC of b for a purpose.
func (c *credentials) seal(what string, b []byte) []byte {
	h := hmac.New(sha256.New, c.key)
	_, _ = h.Write([]byte(what))
	_, _ = h.Write(b)
	return h.Sum(nil)
}

// cookieName returns the name of the login's cookie, by the host that a request names: browsers
// send a cookie to all ports of a host, so servers on two of them would overwrite each other's.
// Browsers accept a name that begins with __Secure over https only.
func (c *credentials) cookieName(host string) string {
	name := "interlock"
	if c.opts.secure() {
		name = "__Secure-interlock"
	}
	if _, port := hosts.Split(host); port != "" {
		name += "-" + port
	}
	return name
}

// reload reads the file again, on SIGHUP.
func (c *credentials) reload(log *slog.Logger) {
	if c.file == nil {
		log.Info("there is no --token-file to read again")
		return
	}
	c.file.reload()
}

// isDenial returns the denial in an error.
func isDenial(err error) *denial {
	var d *denial
	if errors.As(err, &d) {
		return d
	}
	return nil
}
