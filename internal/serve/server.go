package serve

import (
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/internal/hosts"
	"github.com/interlock-go/interlock/web"
)

// The bounds of a request, and of the time for it.
const (
	maxHeader  = 16 << 10
	maxBody    = 64 << 10
	headerTime = 5 * time.Second
	bodyTime   = 15 * time.Second // with the header
	answerTime = 30 * time.Second // a stream has it for each event
	idleTime   = time.Minute
)

// server answers requests.
type server struct {
	opts     *Options
	log      *slog.Logger
	who      *credentials
	wrong    *attempts
	hosts    []string
	cross    *http.CrossOriginProtection
	pages    http.Handler
	stores   []*store
	meters   *meters
	conns    *conns
	streams  streams
	draining atomic.Bool // it is to end
}

// routes are the labels of requests in the metrics and the log. All else is "other".
var routes = map[string]bool{
	"/": true, "/line": true, "/stores": true, "/contention": true, "/live": true, "/break": true,
	"/v1/stores": true, "/v1/lines": true, "/v1/line": true, "/v1/watch": true, "/v1/history": true, "/v1/break": true, "/v1/openapi.json": true,
	"/login": true, "/login.css": true, "/login.svg": true, "/logout": true, "/metrics": true, "/healthz": true, "/readyz": true,
}

// streamRoutes are those that may answer by a stream of events.
var streamRoutes = map[string]bool{"/live": true, "/v1/watch": true}

// routeOf returns the label of a path, and the path below the prefix, which a proxy may have
// removed. A prefix may be the beginning of a route, as /v1.
func (s *server) routeOf(path string) (label, below string) {
	below = path
	if rest, ok := strings.CutPrefix(path, s.opts.Prefix); ok && strings.HasPrefix(rest, "/") && (routes[rest] || !routes[path]) {
		below = rest
	}
	switch {
	case routes[below]:
		return below, below
	case strings.HasPrefix(below, "/static/"):
		return "/static/", below
	}
	return "other", below
}

// ServeHTTP implements http.Handler. See the package's comment for the order.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	label, below := s.routeOf(r.URL.EscapedPath())
	rec := &recorder{ResponseWriter: w}
	r = limited(w, r)
	defer func() {
		if p := recover(); p != nil {
			s.failed(rec, label, p)
		}
		status := rec.status
		if status == 0 {
			status = http.StatusOK
		}
		stream := rec.stream()
		if streamRoutes[below] && status == http.StatusTooManyRequests {
			s.meters.dropped.streams.Add(1)
		}
		s.meters.answered(label, status, time.Since(began), stream)
		s.log.Debug("request", "route", label, "method", r.Method, "status", status, "from", s.from(r), "took", time.Since(began))
	}()
	if below == "/healthz" || below == "/readyz" {
		s.health(rec, r, below)
		return
	}
	if !hosts.Known(r.Host, s.hosts) {
		protect(rec.Header())
		problem(rec, http.StatusMisdirectedRequest, "wrong-host", "This server is not known by that host", "a request for host %.100q: want interlock serve --host NAME with that name, if it is right", r.Host)
		return
	}
	if r.Method == http.MethodConnect { // whose path is empty: this is no proxy
		protect(rec.Header())
		only(rec, r, http.MethodGet, http.MethodPost)
		return
	}
	switch below {
	case "/login":
		protect(rec.Header())
		s.login(rec, r)
		return
	case "/logout":
		protect(rec.Header())
		s.logout(rec, r)
		return
	case "/login.css", "/login.svg":
		protect(rec.Header())
		s.loginFile(rec, r, below)
		return
	}
	if _, err := s.who.authenticate(r, cookiesGood(below)); err != nil {
		protect(rec.Header())
		s.deny(rec, r, err)
		return
	}
	arrive(r)
	s.conns.admit(r.Context())
	if below == "/metrics" {
		protect(rec.Header())
		s.metrics(rec, r)
		return
	}
	if streamRoutes[below] {
		ctx, end := s.streams.begin(r.Context())
		defer end()
		r = r.WithContext(ctx)
	}
	if s.opts.BehindTLSProxy {
		r.RemoteAddr = s.from(r) // which stands in the log of what was changed
	}
	s.pages.ServeHTTP(rec, r)
}

// limited returns a copy of a request, with a body of maxBody bytes at most. The request itself
// stays as it is: net/http looks at its body after the answer, and if it finds another one there it
// waits for as much as was announced, instead of closing the connection.
func limited(w http.ResponseWriter, r *http.Request) *http.Request {
	q := new(http.Request)
	*q = *r
	q.Body = http.MaxBytesReader(w, r.Body, maxBody)
	return q
}

// failed answers a request whose handler has panicked, unless an answer has begun.
func (s *server) failed(w *recorder, label string, p any) {
	if p == http.ErrAbortHandler { //nolint:errorlint // it is not wrapped
		panic(p)
	}
	s.log.Error("a request failed by a fault of this server", "route", label, "panic", p, "stack", string(debug.Stack()))
	if w.status > 0 {
		panic(http.ErrAbortHandler) // the client must not take what it has for the whole
	}
	problem(w, http.StatusInternalServerError, "internal", "The server failed", "the log of the server says why")
}

// cookiesGood reports whether the cookie of a login is good for a path: for pages. Programs have a
// header.
func cookiesGood(below string) bool { return !strings.HasPrefix(below, "/v1/") && below != "/metrics" }

// authorize is web.Options.Authorize. It is asked again while a stream lasts.
func (s *server) authorize(r *http.Request) (web.Principal, error) {
	_, below := s.routeOf(r.URL.EscapedPath())
	return s.who.authenticate(r, cookiesGood(below))
}

// deny answers a request without a good credential: a person by the page of the login, anything
// else by a problem.
func (s *server) deny(w http.ResponseWriter, r *http.Request, err error) {
	if s.refused(w, r, err) {
		return
	}
	header := `Bearer realm="interlock"`
	if err != errNone { //nolint:errorlint // it is this one
		header += `, error="invalid_token"`
	}
	w.Header().Set("WWW-Authenticate", header)
	kind, _, _ := mime.ParseMediaType(strings.Split(r.Header.Get("Accept"), ",")[0])
	_, below := s.routeOf(r.URL.EscapedPath())
	if r.Method == http.MethodPost && (below == "/break" || below == "/v1/break") {
		s.breakDenied(r, isDenial(err))
	}
	if r.Method == http.MethodGet && kind == "text/html" && cookiesGood(below) && s.opts.TokenFile != "" {
		v := loginView{Next: s.local(r.URL.RequestURI())}
		if err != errNone { //nolint:errorlint // it is this one
			v.Why = sentence(err)
		}
		s.showLogin(w, http.StatusUnauthorized, v)
		return
	}
	problem(w, http.StatusUnauthorized, "unauthenticated", "No valid credential came with the request", "%v", err)
}

// breakDenied logs a break that somebody asks for with a credential that is over, or that is
// unknown, of which there are attemptsMost in a minute. A request without any is not logged:
// everybody could fill the log with it.
func (s *server) breakDenied(r *http.Request, d *denial) {
	var known []any
	switch {
	case d == nil || d.who == "" && !d.counted:
		return
	case d.who != "":
		known = []any{"by", d.who}
	}
	s.log.Info("interlock web: break", append(known, "from", s.from(r), "outcome", "unauthenticated", "err", d)...)
}

// refused counts an attempt with an unknown token. It answers by 429 and reports true when there
// are too many from one address.
func (s *server) refused(w http.ResponseWriter, r *http.Request, err error) bool {
	d := isDenial(err)
	if d == nil || !d.counted {
		return false
	}
	from := s.from(r)
	n := s.wrong.add(from)
	switch {
	case n == attemptsMost+1:
		s.log.Warn("too many unknown tokens: more are answered by 429 for a minute", "from", from)
	case n <= attemptsMost:
		s.log.Warn("unknown token", "from", from)
		return false
	}
	s.meters.dropped.credentials.Add(1)
	w.Header().Set("Retry-After", "60")
	problem(w, http.StatusTooManyRequests, "too-many", "There are too many attempts", "more than %d unknown tokens in a minute", attemptsMost)
	return true
}

// from returns the address of the client; behind a proxy, the one that the proxy saw.
func (s *server) from(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil { // a Unix socket
		host = "local"
	}
	if s.opts.BehindTLSProxy {
		if f := r.Header.Values("X-Forwarded-For"); len(f) > 0 {
			all := strings.Split(f[len(f)-1], ",")
			last := strings.TrimSpace(all[len(all)-1])
			if at, err := netip.ParseAddrPort(last); err == nil { // some proxies say the port, too
				last = at.Addr().String()
			}
			if ip := net.ParseIP(last); ip != nil {
				return ip.String()
			}
		}
	}
	return host
}

// recorder keeps the status of an answer, for the metrics.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// stream reports whether the answer is a stream of events.
func (r *recorder) stream() bool {
	return strings.HasPrefix(r.Header().Get("Content-Type"), "text/event-stream")
}
