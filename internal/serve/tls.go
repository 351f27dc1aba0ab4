package serve

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// tlsConfig returns the configuration of TLS, which follows its files: a certificate is renewed
// without a restart. Both are nil without TLS.
func (o *Options) tlsConfig() (*tls.Config, *watched[*tls.Config], error) {
	if o.TLSCert == "" {
		return nil, nil, nil
	}
	files := []string{o.TLSCert, o.TLSKey}
	if o.ClientCA != "" {
		files = append(files, o.ClientCA)
	}
	w, err := watch(o.Logger, "the files of TLS", o.readTLS, files...)
	if err != nil {
		return nil, nil, &ConfigError{err}
	}
	c := w.current().Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return w.current(), nil }
	return c, w, nil
}

func (o *Options) readTLS() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if o.ClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(o.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("--client-ca: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--client-ca %s: the file holds no certificate in PEM", o.ClientCA)
	}
	// A client without a certificate may have a token, and needs neither for /healthz.
	c.ClientAuth = tls.VerifyClientCertIfGiven
	return c, nil
}
