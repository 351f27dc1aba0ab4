package deploytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"go.yaml.in/yaml/v2"

	"github.com/interlock-go/interlock/internal/serve"
)

// put writes a file that nobody else may read.
func put(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// certificates writes a CA, and certificates that it has signed with their keys: of a server on loopback, and of Prometheus.
func certificates(t *testing.T, dir string) {
	t.Helper()
	var ca *x509.Certificate
	var caKey *ecdsa.PrivateKey
	for i, c := range []struct{ name, file, key string }{
		{"CA", "interlock-ca.pem", "ca.key"}, {"localhost", "server.pem", "server.key"}, {"prometheus.example.org", "prometheus.pem", "prometheus.key"},
	} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		cert := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: c.name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			BasicConstraintsValid: true, IsCA: ca == nil, DNSNames: []string{c.name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if ca == nil {
			ca, caKey = cert, key
		}
		der, err := x509.CreateCertificate(rand.Reader, cert, ca, &key.PublicKey, caKey)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, c.file), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		put(t, filepath.Join(dir, c.key), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	}
}

// tokensOf returns the lines that docs/serve.md has in the file of tokens for whoever scrapes, with the hash of a token.
func tokensOf(t *testing.T, token string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(token))
	var lines strings.Builder
	for _, m := range regexp.MustCompile(`(?m)echo "?([a-z0-9]+=\S+ name=prometheus[^">]*?)"? *>>tokens`).FindAllSubmatch(page, -1) {
		lines.WriteString(strings.ReplaceAll(string(m[1]), "$hash", hex.EncodeToString(hash[:])) + "\n")
	}
	if n := strings.Count(lines.String(), "\n"); n != 2 {
		t.Fatalf("docs/serve.md has %d lines for who scrapes, want one by a token and one by a certificate", n)
	}
	return lines.String()
}

// Each way to scrape that the file has is one, by Prometheus' own client and with the lines of the page, and shows the metrics and no lock.
func TestScrape(t *testing.T) {
	dir := t.TempDir()
	certificates(t, dir)
	const token = "a-token-of-prometheus-0123456789"
	put(t, filepath.Join(dir, "interlock-token"), token+"\n")
	at := runs(t, serve.Options{
		TLSCert: filepath.Join(dir, "server.pem"), TLSKey: filepath.Join(dir, "server.key"), ClientCA: filepath.Join(dir, "interlock-ca.pem"),
		TokenFile: put(t, filepath.Join(dir, "tokens"), tokensOf(t, token)),
	})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../prometheus/scrape.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		ScrapeConfigs []struct {
			JobName       string                  `yaml:"job_name"`
			Scheme        string                  `yaml:"scheme"`
			Client        config.HTTPClientConfig `yaml:",inline"`
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	here := strings.NewReplacer("/etc/prometheus/", dir+"/", "locks.example.org:7070", u.Host).Replace(string(text))
	if err := yaml.UnmarshalStrict([]byte(here), &file); err != nil || len(file.ScrapeConfigs) != 2 {
		t.Fatalf("%d jobs, %v, want two", len(file.ScrapeConfigs), err)
	}
	for _, job := range file.ScrapeConfigs {
		err := job.Client.Validate() // which also fills in what is not said, as Prometheus does when it reads the file
		var client *http.Client
		if err == nil {
			client, err = config.NewClientFromConfig(job.Client, job.JobName)
		}
		if err != nil {
			t.Errorf("%s: %v", job.JobName, err)
			continue
		}
		get := func(path string) (int, string) {
			t.Helper()
			resp, err := client.Get(job.Scheme + "://" + job.StaticConfigs[0].Targets[0] + path) //nolint:noctx // it has a timeout
			if err != nil {
				t.Fatalf("%s: %v", job.JobName, err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, string(b)
		}
		if status, body := get("/metrics"); status != http.StatusOK || !strings.Contains(body, `interlock_store_up{store="main"} 1`) {
			t.Errorf("%s: %d\n%s", job.JobName, status, body)
		}
		for _, path := range []string{"/", "/v1/lines?store=main", "/v1/watch?store=main", "/stores"} {
			if status, body := get(path); status != http.StatusForbidden {
				t.Errorf("%s: %s is answered by %d\n%s", job.JobName, path, status, body)
			}
		}
		client.CloseIdleConnections()
	}
	resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: anybody(t, dir)}}).Get(at + "metrics") //nolint:noctx // on loopback
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a credential: %d", resp.StatusCode)
	}
}

// anybody is the TLS of a client without a certificate.
func anybody(t *testing.T, dir string) *tls.Config {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(dir, "interlock-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatal("no CA")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}
