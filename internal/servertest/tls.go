package servertest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// encrypted is a Redis that listens by TLS only, with a certificate for 127.0.0.1 and localhost that it signed itself.
var encrypted = program{ready: redis.ready, args: func(s *Server) ([]string, error) {
	if err := certify(s.CertFile(), s.keyFile()); err != nil {
		return nil, fmt.Errorf("servertest: no certificate: %w", err)
	}
	args, err := redis.args(s)
	return append(args,
		"--port", "0", "--tls-port", strconv.Itoa(s.port), "--tls-auth-clients", "no",
		"--tls-cert-file", s.CertFile(), "--tls-key-file", s.keyFile(), "--tls-ca-cert-file", s.CertFile(),
	), err
}}

// CertFile is the path of the certificate that a client has to trust, in PEM, where Options.TLS is set.
func (s *Server) CertFile() string { return filepath.Join(s.dir, "cert.pem") }

func (s *Server) keyFile() string { return filepath.Join(s.dir, "key.pem") }

// certify makes the two files unless they are there.
func certify(certFile, keyFile string) error {
	if _, err := os.Stat(certFile); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert := x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "servertest"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost"},
		IsCA:         true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, &cert, &cert, &key.PublicKey, key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(certFile, "CERTIFICATE", signed), writePEM(keyFile, "PRIVATE KEY", secret))
}

func writePEM(path, kind string, der []byte) error {
	var b bytes.Buffer
	if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// dial connects as Do does.
func (s *Server) dial(deadline time.Time) (net.Conn, error) {
	d := &net.Dialer{Deadline: deadline}
	if !s.o.TLS {
		return d.Dial("tcp", s.Addr())
	}
	text, err := os.ReadFile(s.CertFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return tls.DialWithDialer(d, "tcp", s.Addr(), &tls.Config{RootCAs: roots})
}
