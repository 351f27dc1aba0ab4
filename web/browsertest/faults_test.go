package browsertest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/serve"
)

// Each kind of fault is noticed by itself, in a page that has it: the server's own, with something
// put into it.
func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	s := serves(t, serve.Options{Stores: [][2]string{{"main", "mem:"}}})
	to, err := url.Parse(s.at)
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css")
	}))
	_ = other.Listener.Close()
	other.Listener = otherHost(t)
	other.Start()
	t.Cleanup(other.Close)
	for _, c := range []struct {
		name, put string
		script    string // put before the page's own
		lax       bool   // the page has no policy
		fault     string // the only one
		barrier   string // the only one
		wide      bool
	}{
		{name: "nothing"},
		{name: "an error of a script", script: "null.x;", fault: "script error"},
		{name: "an error later", script: "setTimeout(() => { throw new Error('late'); });", fault: "script error"},
		{name: "a promise", script: "Promise.reject(new Error('nobody caught it'));", fault: "script error"},
		{name: "words in the console", script: "console.error('so');", fault: `console error: "so"`},
		{name: "a file that is missing", put: `<img alt="" src="static/none.png">`, fault: "console error: network"},
		{name: "a script in the page", put: `<script>1</script>`, fault: "policy"},
		{name: "a style in the page", put: `<p style="color: red">x</p>`, fault: "policy"},
		{name: "HTML made of text", script: `addEventListener("load", () => { try { document.body.innerHTML += "" } catch { } });`, fault: "policy"},
		{name: "another host", put: `<link rel="stylesheet" href="` + other.URL + `/x.css">`, lax: true, fault: "request to another host: " + other.URL},
		{name: "a frame", put: `<iframe title="x" src="` + other.URL + `/x.css"></iframe>`, lax: true, fault: "request to another host: " + other.URL},
		{name: "a button without a name", put: `<button></button>`, barrier: "button-name"},
		{name: "a field without a label", put: `<input type="text">`, barrier: "label"},
		{name: "grey on grey", put: `<p style="color: #999; background: #aaa">hard to read</p>`, lax: true, barrier: "color-contrast"},
		{name: "a wide page", put: `<p style="width: 2000px">x</p>`, lax: true, wide: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proxy := httputil.NewSingleHostReverseProxy(to)
			proxy.FlushInterval = -1
			proxy.ModifyResponse = func(r *http.Response) error {
				if c.lax {
					r.Header.Del("Content-Security-Policy")
				}
				switch kind := r.Header.Get("Content-Type"); {
				case strings.HasPrefix(kind, "text/html"):
					return change(r, "</h1>", "</h1>"+c.put)
				case strings.HasPrefix(kind, "text/javascript"):
					return change(r, `"use strict";`, `"use strict";`+c.script)
				}
				return nil
			}
			front := httptest.NewServer(proxy)
			t.Cleanup(front.Close)
			p := opened(t, front.URL, deskLight)
			p.visit("/", 200)
			p.sees("0 names, 0 held")
			if c.fault != "" {
				redistest.Until(t, patience, "no fault was seen, want "+c.fault, func() bool { return len(p.seen()) > 0 })
			}
			var over int
			if err := p.tells(`document.documentElement.scrollWidth - innerWidth`, &over); err != nil {
				t.Fatal(err)
			}
			if (over > 0) != c.wide {
				t.Errorf("it is %d pixels wider than the window, want so %v", over, c.wide)
			}
			for _, f := range p.seen() {
				if c.fault == "" || !strings.Contains(f, c.fault) && !strings.HasPrefix(f, "console error: security") {
					t.Errorf("the fault is %q, want %q", f, c.fault)
				}
			}
			found := p.barriers()
			if len(found) > 0 && (len(found) > 1 || found[0].ID != c.barrier) || len(found) == 0 && c.barrier != "" {
				t.Errorf("the barriers are %v, want %q", found, c.barrier)
			}
		})
	}
}

// change puts something else into an answer.
func change(r *http.Response, from, to string) error {
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil || !bytes.Contains(text, []byte(from)) {
		return fmt.Errorf("no %s: %w", from, err)
	}
	text = bytes.Replace(text, []byte(from), []byte(to), 1)
	r.Body = io.NopCloser(bytes.NewReader(text))
	r.ContentLength = int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}
