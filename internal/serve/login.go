package serve

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/internal/icon"
)

//go:embed login.html
var loginHTML string

//go:embed login.css
var loginCSS string

// loginPage returns the page of the login. It is parsed when it is first shown: an init must be
// cheap.
var loginPage = sync.OnceValue(func() *template.Template { return template.Must(template.New("login").Parse(loginHTML)) })

// loginView is what the page shows.
type loginView struct {
	Prefix, Next string
	Why          string // nothing is known of who asks, or no longer
	Name         string // who is logged in, and then nothing else
}

// showLogin answers by the page.
func (s *server) showLogin(w http.ResponseWriter, status int, v loginView) {
	v.Prefix = s.opts.Prefix
	var b bytes.Buffer
	if err := loginPage().Execute(&b, v); err != nil {
		s.log.Error("the page of the login", "error", err)
		problem(w, http.StatusInternalServerError, "internal", "The server failed", "the log of the server says why")
		return
	}
	if status == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="interlock", error="invalid_token"`)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = b.WriteTo(w) // the client may have gone
}

// loginFile answers by what the page loads, which is for everybody.
func (s *server) loginFile(w http.ResponseWriter, r *http.Request, below string) {
	if !only(w, r, http.MethodGet) {
		return
	}
	mediaType, content := "text/css; charset=utf-8", []byte(loginCSS)
	if below == "/login.svg" {
		mediaType, content = "image/svg+xml", icon.SVG
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(content) // the client may have gone
}

// login answers by the page of the login, or makes a cookie of the token that its form sends. The
// token comes in a body, since addresses are kept in logs and histories.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	if !only(w, r, http.MethodGet, http.MethodPost) {
		return
	}
	if r.Method != http.MethodPost {
		v := loginView{Next: s.opts.Prefix + "/"}
		if who, err := s.who.authenticate(r, true); err == nil {
			v.Name = who.Name
		}
		s.showLogin(w, http.StatusOK, v)
		return
	}
	if !s.form(w, r) {
		return
	}
	next := s.local(r.PostFormValue("next"))
	t := s.who.table()
	if t == nil {
		problem(w, http.StatusForbidden, "forbidden", "Not allowed", "this server takes no tokens")
		return
	}
	token := strings.TrimSpace(r.PostFormValue("token"))
	e, err := t.find(token, s.who.now())
	if err != nil {
		if s.refused(w, r, err) {
			return
		}
		s.showLogin(w, http.StatusUnauthorized, loginView{Next: next, Why: sentence(err)})
		return
	}
	s.log.Info("login", "who", e.name, "from", s.from(r))
	http.SetCookie(w, s.who.login(r.Host, e))
	w.Header().Set("Location", next)
	w.WriteHeader(http.StatusSeeOther)
}

// logout removes the cookie.
func (s *server) logout(w http.ResponseWriter, r *http.Request) {
	if !only(w, r, http.MethodPost) || !s.form(w, r) {
		return
	}
	http.SetCookie(w, s.who.logout(r.Host))
	w.Header().Set("Location", s.opts.Prefix+"/login")
	w.WriteHeader(http.StatusSeeOther)
}

// form reads a form that a page of this server sent, or answers why not.
func (s *server) form(w http.ResponseWriter, r *http.Request) bool {
	if err := s.cross.Check(r); err != nil {
		problem(w, http.StatusForbidden, "cross-origin", "The request comes from another page", "%v", err)
		return false
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength != 0 && (err != nil || kind != "application/x-www-form-urlencoded") {
		problem(w, http.StatusUnsupportedMediaType, "media-type", "Another type of content is wanted", "want application/x-www-form-urlencoded")
		return false
	}
	switch err := r.ParseForm(); {
	case errors.As(err, new(*http.MaxBytesError)):
		problem(w, http.StatusRequestEntityTooLarge, "too-large", "The request is too large", "want %d bytes or less", maxBody)
	case err != nil:
		problem(w, http.StatusBadRequest, "bad-request", "The request is malformed", "the form cannot be read")
	default:
		return true
	}
	return false
}

// local returns where the login leads: next if that is a page of this server, else the first page.
func (s *server) local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, s.opts.Prefix+"/") || dotted(u.Path) ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return s.opts.Prefix + "/"
	}
	return u.String()
}

// dotted reports whether a path has a segment of dots, by which a browser goes up, also out of the
// prefix.
func dotted(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool { return segment == "." || segment == ".." })
}

// sentence returns an error as the page shows it.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
