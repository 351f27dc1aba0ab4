package serve

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// The certificate of a client is a credential, by the names of the file; TLS follows its files.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := makeCA(t, dir)
	_, at := newTried(t)
	s := serves(t, &Options{
		Stores: [][2]string{{"one", at}}, TLSCert: ca.serverCert, TLSKey: ca.serverKey, ClientCA: ca.caFile,
		TokenFile: write(t, filepath.Join(dir, "tokens"), someTokens+someCerts+"cert=ops.example.org name=ops read=*\n"),
	})
	by := func(name string) *http.Client {
		tr := &http.Transport{TLSClientConfig: ca.client(t, name), ForceAttemptHTTP2: true}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	for name, want := range map[string]int{"ops": 200, "stranger": 401, "": 401} {
		if a := s.askBy(by(name), "GET", "/metrics", ""); a.status != want {
			t.Errorf("certificate %q: %d, want %d\n%s", name, a.status, want, a.body)
		}
	}
	if a := s.askBy(by(""), "GET", "/metrics", "", "Authorization", "Bearer prometheus-0123456789"); a.status != 200 {
		t.Errorf("a token: %d", a.status)
	}
	if a := s.askBy(by(""), "GET", "/healthz", ""); a.status != 200 {
		t.Errorf("health without a certificate: %d", a.status)
	}
	other := makeCA(t, t.TempDir())
	stranger := by("")
	stranger.Transport.(*http.Transport).TLSClientConfig.Certificates = other.client(t, "ops").Certificates
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+"/metrics", nil)
	if resp, err := stranger.Do(req); err == nil { // else it is refused as early as that
		if resp.StatusCode == http.StatusOK {
			t.Error("a certificate of another CA is good")
		}
		_ = resp.Body.Close()
	}

	before := by("ops")
	if a := s.askBy(before, "GET", "/metrics", ""); a.status != 200 {
		t.Errorf("before: %d", a.status)
	}

	// A new certificate, of another CA, is what the next connection sees.
	next := makeCA(t, dir)
	fresh := func() bool {
		tr := &http.Transport{TLSClientConfig: next.client(t, "")}
		defer tr.CloseIdleConnections()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+"/healthz", nil)
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	}
	eventually(t, "the new certificate is used", fresh)

	// The connection of before goes on; its certificate is good for nothing any more, whose CA is
	// no longer one of the file's.
	if a := s.askBy(before, "GET", "/metrics", ""); a.status != 401 || !strings.Contains(a.body, "no longer one of --client-ca") {
		t.Errorf("a certificate of the former CA, on its connection: %d %s", a.status, a.body)
	}
}
