package interlockcertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/interlock-go/interlock"
	interlockcertmagic "github.com/interlock-go/interlock/contrib/certmagic"
	"github.com/interlock-go/interlock/memlock"
)

const (
	site    = "example.com"
	lockKey = "issue_cert_" + site // CertMagic's name of the lock
)

func newClient(t *testing.T, store *memlock.Driver) *interlock.Client {
	t.Helper()
	c, err := interlock.New(store.Share(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// authority signs what it is asked for, once it is let.
type authority struct {
	key    *ecdsa.PrivateKey
	issued atomic.Int32
	before func() // each certificate
}

func newAuthority(t *testing.T, before func()) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{key: key, before: before}
}

func (a *authority) IssuerKey() string { return "test" }

func (a *authority) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	a.before()
	a.issued.Add(1)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: site}, DNSNames: csr.DNSNames,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, csr.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// newManager returns the CertMagic of one machine.
func newManager(t *testing.T, s certmagic.Storage, a *authority) *certmagic.Config {
	t.Helper()
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil },
		Logger:           zap.NewNop(),
	})
	t.Cleanup(cache.Stop)
	config = certmagic.New(cache, certmagic.Config{Storage: s, Issuers: []certmagic.Issuer{a}, Logger: zap.NewNop()})
	return config
}

// Three machines want a certificate at once: one obtains it, and the others find it when they come in.
func TestStorage_AFleetObtainsACertificateOnce(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	const machines = 3
	a := newAuthority(t, func() { // not before all others wait for it
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		for l, err := range store.Watch(ctx, lockKey) {
			if err != nil {
				t.Errorf("the others have not come: %v", err)
				return
			}
			if len(l.Claims) == machines {
				return
			}
		}
	})
	files := &certmagic.FileStorage{Path: t.TempDir()}
	results := make(chan error, machines)
	var managers []*certmagic.Config
	for range machines {
		m := newManager(t, interlockcertmagic.New(files, newClient(t, store)), a)
		managers = append(managers, m)
		go func() { results <- m.ObtainCertSync(t.Context(), site) }()
	}
	for range machines {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := a.issued.Load(); n != 1 {
		t.Errorf("%d certificates were issued, want 1", n)
	}
	for _, m := range managers {
		if _, err := m.CacheManagedCertificate(t.Context(), site); err != nil {
			t.Errorf("a machine without the certificate: %v", err)
		}
	}
}

// losing loses each lock as soon as it is held.
type losing struct {
	*interlockcertmagic.Storage
	store *memlock.Driver
}

func (s losing) Lock(ctx context.Context, name string) error {
	err := s.Storage.Lock(ctx, name)
	s.store.Lose(name)
	return err
}

// CertMagic asks for a renewal of the lease before each attempt, and makes none when the lock was lost.
func TestStorage_AfterALossNothingIsObtained(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	a := newAuthority(t, func() {})
	s := losing{interlockcertmagic.New(&certmagic.FileStorage{Path: t.TempDir()}, newClient(t, store)), store}
	attempt := 1
	err := newManager(t, s, a).ObtainCertSync(context.WithValue(t.Context(), certmagic.AttemptsCtxKey, &attempt), site)
	if err == nil || !strings.Contains(err.Error(), "unable to renew lock lease") || !strings.Contains(err.Error(), interlock.ErrLost.Error()) {
		t.Errorf("%v, want that the lease cannot be renewed, since it was lost", err)
	}
	if n := a.issued.Load(); n != 0 {
		t.Errorf("%d certificates were issued without the lock", n)
	}
}

func TestStorage_IsNotReentrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := interlockcertmagic.New(nil, newClient(t, memlock.New()))
		if err := s.Lock(t.Context(), "m"); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := s.Lock(ctx, "m"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, interlock.ErrHeld) {
			t.Errorf("locked twice: %v, want the end of the context, while it is held", err)
		}
		if ok, err := s.TryLock(t.Context(), "m"); ok || err != nil {
			t.Errorf("tried while it is held: %v, %v", ok, err)
		}
		if err := s.RenewLockLease(t.Context(), "m", time.Minute); err != nil {
			t.Errorf("an hour later: %v", err)
		}
		over, end := context.WithCancel(t.Context())
		end()
		if err := s.Unlock(over, "m"); err != nil {
			t.Errorf("unlocked with a context that is over: %v", err)
		}
		for what, err := range map[string]error{"unlocked twice": s.Unlock(t.Context(), "m"), "renewed": s.RenewLockLease(t.Context(), "m", 0)} {
			if !errors.Is(err, interlockcertmagic.ErrNotLocked) {
				t.Errorf("%s: %v, want ErrNotLocked", what, err)
			}
		}
		if ok, err := s.TryLock(t.Context(), "m"); !ok || err != nil {
			t.Errorf("tried when it is free: %v, %v", ok, err)
		}
		if err := s.Unlock(t.Context(), "m"); err != nil {
			t.Error(err)
		}
	})
}

// One goroutine loses the lock and does not look; the next of this process waits for its Unlock, which leaves the lease of the
// next alone. Another machine gets in meanwhile.
func TestStorage_AnUnlockAfterALossLeavesTheNextAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		s, other := interlockcertmagic.New(nil, newClient(t, store)), interlockcertmagic.New(nil, newClient(t, store))
		if err := s.Lock(t.Context(), "m"); err != nil {
			t.Fatal(err)
		}
		store.Lose("m")
		next := make(chan error, 1)
		go func() { next <- s.Lock(t.Context(), "m") }()
		time.Sleep(time.Minute)
		if len(next) > 0 {
			t.Fatalf("the next is in beside the one that lost: %v", <-next)
		}
		if ok, err := s.TryLock(t.Context(), "m"); ok || err != nil {
			t.Errorf("tried beside the one that lost: %v, %v", ok, err)
		}
		if err := other.Lock(t.Context(), "m"); err != nil {
			t.Errorf("another machine: %v", err)
		}
		if err := other.Unlock(t.Context(), "m"); err != nil {
			t.Errorf("another machine: %v", err)
		}
		if err := s.Unlock(t.Context(), "m"); !errors.Is(err, interlock.ErrLost) {
			t.Errorf("Unlock after the loss: %v, want the loss", err)
		}
		if err := <-next; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := s.RenewLockLease(t.Context(), "m", 0); err != nil {
			t.Errorf("the next has lost its lock: %v", err)
		}
		if err := s.Unlock(t.Context(), "m"); err != nil {
			t.Error(err)
		}
	})
}
