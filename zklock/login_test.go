package zklock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// ample gives a server on a busy machine as long for an answer as a test has patience.
const ample = "timeout=30s"

// logged is a session of a driver by its URL.
func logged(t *testing.T, url string) driver.Session {
	t.Helper()
	with := "?"
	if strings.Contains(url, with) {
		with = "&"
	}
	d, err := driver.OpenURL(within(t), url+with+ample)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	s, err := d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keepsOut insists that others cannot take what one has made, nor leave anything there.
func keepsOut(t *testing.T, s driver.Session, others ...driver.Session) {
	t.Helper()
	mine, seat := storetest.Mutex("private"), permit("seats", 1, 2)
	storetest.Asks(t, s, mine, true)
	storetest.Asks(t, s, seat, true)
	for _, other := range others {
		for _, c := range []driver.Claim{storetest.Mutex("private"), permit("seats", 1, 2)} {
			_, err := other.Acquire(within(t), c)
			refused(t, err, "the access list of the node forbids it")
		}
	}
	storetest.Leaves(t, s, mine, true)
	storetest.Leaves(t, s, seat, true)
	again := storetest.Mutex("private")
	storetest.Asks(t, s, again, true)
	storetest.Leaves(t, s, again, true)
}

// Whoever logs in by the scheme digest has nodes of their own, unless they are to be everybody's.
func TestDigest(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("se:cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := logged(t, "zk://app:se%3Acret@"+server.Addr())
	keepsOut(t, s, logged(t, "zk://"+server.Addr()), logged(t, "zk://app:wrong@"+server.Addr()), logged(t, "zk://bob:se%3Acret@"+server.Addr()))
	twin := logged(t, "zk://app@"+server.Addr()+"?password_file="+file)
	mine, next := storetest.Mutex("private"), storetest.Mutex("private")
	storetest.Asks(t, s, mine, true)
	storetest.Asks(t, twin, next, false)
	storetest.Leaves(t, s, mine, true)
	storetest.Awaits(t, twin, next)

	open := storetest.Mutex("open")
	storetest.Asks(t, logged(t, "zk://app:se%3Acret@"+server.Addr()+"?acl=world"), open, true)
	storetest.Asks(t, logged(t, "zk://"+server.Addr()), storetest.Mutex("open"), false)
	nobody := logged(t, "zk://"+server.Addr()+"?acl=auth")
	_, err := nobody.Acquire(within(t), storetest.Mutex("nobody's"))
	refused(t, err, "the access list is invalid")
}

// A connection that ends takes the login with it: over the next one it is said again.
func TestALoginOverEachConnection(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	w := wire.New(t, server.Addr())
	s := logged(t, "zk://app:secret@"+w.Addr())
	for range 3 {
		mine := storetest.Mutex("private")
		storetest.Asks(t, s, mine, true)
		w.Cut()
		renews(t, s)
		storetest.Leaves(t, s, mine, true)
	}
}

// Who logs in by SASL is known to the server by a password that does not go over the wire.
func TestSASL(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jaas.conf")
	if err := os.WriteFile(file, []byte(`Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_app="secret" user_bob="other"; };`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := servertest.ZooKeeper(t, "-Djava.security.auth.login.config="+file, "-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
		"-Dzookeeper.sessionRequireClientSASLAuth=true")
	keepsOut(t, logged(t, "zk://app:secret@"+server.Addr()+"?sasl=digest-md5"), logged(t, "zk://bob:other@"+server.Addr()+"?sasl=DIGEST-MD5"))
	for url, want := range map[string]string{
		"zk://app:hush@" + server.Addr() + "?sasl=DIGEST-MD5&" + ample: `user "app"`,
		"zk://eve:hush@" + server.Addr() + "?sasl=DIGEST-MD5&" + ample: `user "eve"`,
	} {
		_, err := driver.OpenURL(within(t), url)
		refused(t, err, want)
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v", err)
		}
	}
	if _, err := driver.OpenURL(within(t), "zk://"+server.Addr()+"?timeout=2s"); err == nil {
		t.Error("nobody has logged in, to a server that wants it")
	}
	plain := servertest.ZooKeeper(t)
	_, err := driver.OpenURL(within(t), "zk://app:hush@"+plain.Addr()+"?sasl=DIGEST-MD5&"+ample)
	refused(t, err, "does not offer SASL's DIGEST-MD5")
}

// Servers and clients know each other by certificates.
func TestTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ours, theirs := certify(t, folder, "ours"), certify(t, folder, "theirs")
	addr := secured(t, "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory", "ssl.keyStore.location="+theirs, "ssl.keyStore.type=PEM",
		"ssl.trustStore.location="+ours, "ssl.trustStore.type=PEM", "ssl.hostnameVerification=false")
	s := logged(t, "zk+tls://"+addr+"?acl=auth&ca="+theirs+"&cert="+ours+"&key="+ours)
	mine := storetest.Mutex("encrypted")
	storetest.Asks(t, s, mine, true)
	storetest.Leaves(t, s, mine, true)
	finds(t, "by TLS", "zk+tls://"+addr+"?acl=auth&ca="+theirs+"&cert="+ours+"&key="+ours, unhurried, srvrAlone)
	for url, want := range map[string]string{
		"zk+tls://" + addr + "?" + ample + "&ca=" + ours + "&cert=" + ours + "&key=" + ours: "certificate",
		"zk+tls://" + addr + "?timeout=5s&ca=" + theirs:                                     addr,
		"zk+tls://" + addr + "?ca=/dev/null":                                                "no certificate in PEM",
		"zk+tls://" + addr + "?cert=" + ours:                                                "parameters cert and key",
		"zk://" + addr + "?timeout=2s":                                                      addr,
	} {
		if _, err := driver.OpenURL(within(t), url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", url, err, want)
		}
	}
}

// secured starts a server and returns where it speaks TLS: on a port that is free when it is
// chosen, and may be somebody's by the time that the server listens there.
func secured(t *testing.T, args ...string) (addr string) {
	t.Helper()
	for tries := 1; ; tries++ {
		port, err := servertest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s, err := servertest.StartZooKeeper(within(t), servertest.Options{
			Args: append([]string{fmt.Sprintf("secureClientPort=%d", port), "secureClientPortAddress=127.0.0.1"}, args...),
		})
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		}
		if tries == 3 {
			t.Fatal(err)
		}
	}
}

// certify writes a certificate for this machine, and its key, into one file.
func certify(t *testing.T, folder, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, name+".pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
