package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"
)

// cookieSize is the size of a cookie: the entry, the end in seconds since 1970, and the seal.
const cookieSize = len(cookieID{}) + 8 + sha256.Size

// login returns the cookie of an entry, for the host by which the server was asked.
func (c *credentials) login(host string, e *entry) *http.Cookie {
	now := c.now()
	end := now.Add(loginLasts)
	if !e.expires.IsZero() && e.expires.Before(end) {
		end = e.expires
	}
	id := c.id(e)
	b := binary.BigEndian.AppendUint64(id[:], uint64(end.Unix()))
	b = append(b, c.seal("cookie", b)...)
	cookie := c.cookie(host, base64.RawURLEncoding.EncodeToString(b))
	cookie.MaxAge = max(int(end.Sub(now)/time.Second), 1)
	return cookie
}

// logout returns the cookie that ends a login.
func (c *credentials) logout(host string) *http.Cookie {
	cookie := c.cookie(host, "")
	cookie.MaxAge = -1
	return cookie
}

func (c *credentials) cookie(host, value string) *http.Cookie {
	return &http.Cookie{
		Name: c.cookieName(host), Value: value, Path: c.opts.Prefix + "/",
		HttpOnly: true, Secure: c.opts.secure(), SameSite: http.SameSiteStrictMode,
	}
}

// ofCookie returns the entry whose login came with a request. There may be other cookies beside it:
// of a server at / for this one below a prefix, and of this one before its restart. They are no
// login here. Two logins of different people are refused: one of them was planted.
func (c *credentials) ofCookie(r *http.Request, t *table) (found *entry, _ error) {
	why := error(errNone)
	for _, sent := range r.CookiesNamed(c.cookieName(r.Host)) {
		e, err := c.ofLogin(sent.Value, t)
		switch {
		case err != nil:
			why = err
		case found != nil && found != e:
			return nil, errCookie
		default:
			found = e
		}
	}
	if found != nil {
		return found, nil
	}
	return nil, why
}

// ofLogin returns the entry whose login a cookie is.
func (c *credentials) ofLogin(value string, t *table) (*entry, error) {
	b, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(b) != cookieSize {
		return nil, errCookie
	}
	body, seal := b[:cookieSize-sha256.Size], b[cookieSize-sha256.Size:]
	if !hmac.Equal(seal, c.seal("cookie", body)) {
		return nil, errCookie
	}
	e := t.byID[cookieID(body[:len(cookieID{})])]
	end := int64(binary.BigEndian.Uint64(body[len(cookieID{}):]))
	switch {
	case e == nil:
		return nil, errCookie
	case c.now().Unix() >= end:
		return nil, &denial{text: errCookie.text, who: e.name}
	}
	if e.expired(c.now()) {
		return nil, errExpired(e)
	}
	return e, nil
}
