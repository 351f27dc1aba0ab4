package fence_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fence"
)

func TestHandler(t *testing.T) {
	var mark fence.Mark
	var served int
	server := httptest.NewServer(fence.Handler(
		func(r *http.Request) *fence.Mark {
			if r.URL.Path != "/doc" {
				return nil
			}
			return &mark
		},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served++ }),
	))
	defer server.Close()
	for _, step := range []struct {
		method, path string
		tokens       []string
		status       int
		highest      string
	}{
		{"GET", "/other", nil, 404, ""},
		{"GET", "/doc", nil, 200, ""},
		{"PUT", "/doc", nil, 428, ""},
		{"PUT", "/doc", []string{"0"}, 428, ""},
		{"PUT", "/doc", []string{"33"}, 200, ""},
		{"PUT", "/doc", []string{"33"}, 200, ""},
		{"GET", "/doc", []string{"34"}, 200, ""}, // a claim, so that 33 can no longer write
		{"PUT", "/doc", []string{"33"}, 412, "34"},
		{"GET", "/doc", []string{"33"}, 412, "34"},
		{"GET", "/doc", nil, 200, ""},
		{"DELETE", "/doc", []string{"34"}, 200, ""},
		{"PUT", "/doc", []string{"35", "36"}, 400, ""},
		{"PUT", "/doc", []string{"+35"}, 400, ""},
		{"PUT", "/doc", []string{""}, 400, ""},
		{"PUT", "/doc", []string{"9223372036854775808"}, 400, ""},
		{"PUT", "/doc", []string{"99999999999999999999"}, 400, ""},
		{"PUT", "/doc", []string{"9223372036854775807"}, 200, ""},
	} {
		req, err := http.NewRequest(step.method, server.URL+step.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header[fence.Header] = step.tokens
		before := served
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != step.status || res.Header.Get(fence.Header) != step.highest {
			t.Errorf("%s %s %q: %s, highest %q, %v; want %d, %q", step.method, step.path, step.tokens, res.Status,
				res.Header.Get(fence.Header), err, step.status, step.highest)
		}
		if (served > before) != (step.status == 200) {
			t.Errorf("%s %s %q: served %v", step.method, step.path, step.tokens, served > before)
		}
		if step.status == 400 && !strings.HasPrefix(string(body), "fence: ") {
			t.Errorf("%s %s %q: body %q does not say what is wrong", step.method, step.path, step.tokens, body)
		}
	}
}

func TestHeader_RoundTrip(t *testing.T) {
	h := http.Header{}
	if err := fence.SetHeader(h, 0); !errors.Is(err, fence.ErrNoToken) || len(h) != 0 {
		t.Errorf("token 0: %v, header %v", err, h)
	}
	if err := fence.SetHeader(h, fence.Max+1); !errors.Is(err, fence.ErrRange) || len(h) != 0 {
		t.Errorf("token above Max: %v, header %v", err, h)
	}
	if err := fence.SetHeader(h, fence.Max); err != nil {
		t.Fatal(err)
	}
	if token, err := fence.FromHeader(h); token != fence.Max || err != nil {
		t.Errorf("got %d, %v; want Max", token, err)
	}
}

// What is no refusal by a guard is not shown to the client.
func TestWriteError_Other(t *testing.T) {
	w := httptest.NewRecorder()
	fence.WriteError(w, errors.New("password is hunter2"))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "hunter2") {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
