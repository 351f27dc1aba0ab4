// Package webtest holds what servers of pages answer to what every answer must be, for the tests of
// package web and of interlock serve.
package webtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Defences are what the header of every answer has, or begins with. A referrer policy is what the
// server chooses.
func Defences(referrer string) map[string]string {
	return map[string]string{
		"Content-Security-Policy": "default-src 'none'; ", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Referrer-Policy": referrer, "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Interlock-Version": "1",
	}
}

// Judge looks at answers.
type Judge struct {
	Statuses []int    // that a request of whatever shape may have. 5xx is none of them
	Secrets  []string // that no answer has in it
	Kinds    []string // of problems, as docs/web.md explains them
	Base     string   // what a redirection leads below
	Defences map[string]string
}

// Kinds reads the kinds of problems that docs/web.md explains.
func Kinds(t testing.TB, page string) (kinds []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^### ([a-z-]+)$`).FindAllSubmatch(text, -1) {
		kinds = append(kinds, string(m[1]))
	}
	return kinds
}

var (
	field    = regexp.MustCompile(`<input [^>]*value="[^"]*"`)
	streamed = regexp.MustCompile("^((event|data|retry)?: ?.*)?\n$") // a line of a stream
)

// Answer fails the test unless an answer to a request by that method is whole, of the type that it
// says, defended, and has no secret in it, nor anything that could run in a page. Its body is text.
func (j *Judge) Answer(t testing.TB, method string, answer *http.Response, text []byte) {
	t.Helper()
	status, header := answer.StatusCode, answer.Header
	if !slices.Contains(j.Statuses, status) {
		t.Errorf("status %d:\n%s", status, text)
	}
	for _, secret := range j.Secrets {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("a secret is in an answer:\n%s", text)
		}
	}
	for name, want := range j.Defences {
		got := header.Get(name)
		if kept := name == "Cache-Control" && status == 200 && strings.HasSuffix(got, "immutable"); got == "" || !strings.HasPrefix(got, want) && !kept {
			t.Errorf("status %d with %s %q, want %q", status, name, got, want)
		}
	}
	for name, with := range map[string]int{"Allow": 405, "WWW-Authenticate": 401, "Retry-After": 429} {
		if got := header.Get(name); (status == with) != (got != "") {
			t.Errorf("%q is answered by %d with %s %q", method, status, name, got)
		}
	}
	if allow := header.Get("Allow"); slices.Contains(strings.Split(allow, ", "), method) {
		t.Errorf("%q is answered by %d, and %q are allowed", method, status, allow)
	}
	j.content(t, status, header, text)
}

func (j *Judge) content(t testing.TB, status int, header http.Header, text []byte) {
	t.Helper()
	switch mediaType, _, _ := strings.Cut(header.Get("Content-Type"), ";"); {
	case mediaType == "application/problem+json":
		j.problem(t, status, text)
	case mediaType == "text/html":
		plain(t, text)
	case status == 301, status == 303:
		if to := header.Get("Location"); !strings.HasPrefix(to, j.Base) || len(text) > 0 {
			t.Errorf("it leads to %q, and says %q", to, text)
		}
	case status != 200:
		t.Errorf("status %d with content of type %q:\n%s", status, mediaType, text)
	case mediaType == "application/json" && !json.Valid(text):
		t.Errorf("no JSON: %s", text)
	case mediaType == "text/event-stream":
		for line := range strings.Lines(string(text)) {
			if !streamed.MatchString(line) {
				t.Errorf("the stream says %q", line)
			}
		}
	case mediaType == "":
		t.Errorf("content of no type:\n%s", text)
	}
}

// problem holds a document to RFC 9457 and to the page that explains it.
func (j *Judge) problem(t testing.TB, status int, text []byte) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
		Line                any
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || status < 400 || p.Status != status || p.Title == "" || p.Detail == "" {
		t.Errorf("%d and %+v, %v, want a problem:\n%s", status, p, err, text)
	}
	if _, kind, _ := strings.Cut(p.Type, "/docs/web.md#"); !slices.Contains(j.Kinds, kind) {
		t.Errorf("a problem of type %q, and the page explains %q", p.Type, j.Kinds)
	}
}

// plain looks for what could run in a page, or turn its text around.
func plain(t testing.TB, text []byte) {
	t.Helper()
	lower := bytes.ToLower(text)
	lower = field.ReplaceAll(lower, nil) // what is sent again by a form is in it as it is
	for _, word := range []string{"<script>", "<img", `"javascript:`, "\u202e"} {
		if bytes.Contains(lower, []byte(word)) {
			t.Errorf("%q in a page:\n%s", word, text)
		}
	}
	if !bytes.HasSuffix(text, []byte("</html>\n")) {
		t.Errorf("a page is cut short:\n%s", text)
	}
}
