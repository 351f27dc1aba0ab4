package serve

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"
)

// cookieSize is that of what a cookie holds: the entry, the end in seconds since 1970, and the seal.
const cookieSize = len(cookieID{}) + 8 + sha256.Size

// login returns the cookie of an entry.
func (c *credentials) login(e *entry) *http.Cookie {
	now := c.now()
	end := now.Add(loginLasts)
	if !e.expires.IsZero() && e.expires.Before(end) {
		end = e.expires
	}
	id := c.id(e)
	b := binary.BigEndian.AppendUint64(id[:], uint64(end.Unix()))
	b = append(b, c.seal("cookie", b)...)
	cookie := c.cookie(base64.RawURLEncoding.EncodeToString(b))
	cookie.MaxAge = max(int(end.Sub(now)/time.Second), 1)
	return cookie
}

// logout returns the cookie that takes a login away.
func (c *credentials) logout() *http.Cookie {
	cookie := c.cookie("")
	cookie.MaxAge = -1
	return cookie
}

func (c *credentials) cookie(value string) *http.Cookie {
	return &http.Cookie{
		Name: c.cookieName(), Value: value, Path: c.opts.Prefix + "/",
		HttpOnly: true, Secure: c.opts.secure(), SameSite: http.SameSiteStrictMode,
	}
}

// ofCookie returns whose login came with a request.
func (c *credentials) ofCookie(r *http.Request, t *table) (*entry, error) {
	sent := r.CookiesNamed(c.cookieName())
	if len(sent) == 0 {
		return nil, errNone
	}
	b, err := base64.RawURLEncoding.DecodeString(sent[0].Value)
	if err != nil || len(b) != cookieSize || len(sent) > 1 {
		return nil, errCookie
	}
	body, seal := b[:cookieSize-sha256.Size], b[cookieSize-sha256.Size:]
	if !hmac.Equal(seal, c.seal("cookie", body)) {
		return nil, errCookie
	}
	e := t.byID[cookieID(body[:len(cookieID{})])]
	end := int64(binary.BigEndian.Uint64(body[len(cookieID{}):]))
	if e == nil || c.now().Unix() >= end {
		return nil, errCookie
	}
	if e.expired(c.now()) {
		return nil, errExpired(e)
	}
	return e, nil
}
