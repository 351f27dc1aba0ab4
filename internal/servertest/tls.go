package servertest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// CertFile is the path of the certificate that a client has to trust, in PEM, where Options.TLS is
// set.
func (s *Server) CertFile() string { return filepath.Join(s.dir, "cert.pem") }

func (s *Server) keyFile() string { return filepath.Join(s.dir, "key.pem") }

// certify makes the certificate, for 127.0.0.1 and localhost, and its key, unless they are there.
// The certificate is signed by its own key.
func (s *Server) certify() error {
	if _, err := os.Stat(s.CertFile()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := makeCertificate(s.CertFile(), s.keyFile()); err != nil {
		return fmt.Errorf("servertest: no certificate: %w", err)
	}
	return nil
}

func makeCertificate(certFile, keyFile string) error {
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
