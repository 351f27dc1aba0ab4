package all

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// patience is how long what must happen may take, on however slow a machine.
const patience = 30 * time.Second

// moved is a store's URL with another address for each of its servers.
func moved(rawURL string, to func(addr string) string) string {
	_, rest, _ := strings.Cut(rawURL, "://")
	rest = rest[:strings.IndexAny(rest+"/", "/?")]
	hosts := rest[strings.LastIndex(rest, "@")+1:]
	addrs := strings.Split(hosts, ",")
	for i := range addrs {
		addrs[i] = to(addrs[i])
	}
	return strings.Replace(rawURL, hosts, strings.Join(addrs, ","), 1)
}

// wired is a store's URL with a wire to each of its servers.
func wired(t *testing.T, rawURL string) (url string, wires []*wire.Wire) {
	t.Helper()
	url = moved(rawURL, func(addr string) string {
		w := wire.New(t, addr)
		wires = append(wires, w)
		return w.Addr()
	})
	return url, wires
}

func open(t *testing.T, url string) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() {
		c, err := interlock.Open(ctx, url, &interlock.Options{Patience: patience})
		if err == nil {
			err = errors.Join(c.Health(ctx), c.Close())
		}
		done <- err
	}()
	return done
}

// Every store that is behind a network is waited for: where nobody listens, and where somebody does who hangs up, as a server that starts does
// or a proxy before one that is away. One try says where it was made; and however far it has come when the connection ends, that nothing was
// sent, since to open changes nothing.
func TestOpenWaitsForEveryStore(t *testing.T) {
	for _, s := range stores {
		if s.name == "memlock" || s.name == "filelock" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			behind := s.shipped(t)
			at, wires := wired(t, behind)
			for _, w := range wires {
				w.Refuse()
			}
			d, err := driver.OpenURL(t.Context(), at)
			if err == nil {
				_ = d.Close(t.Context())
			}
			if !errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), wires[0].Addr()) {
				t.Errorf("where nobody listens: %v, want that nothing was sent, and to %s", err, wires[0].Addr())
			}
			tried := make(chan struct{})
			hangUp(t, wires[0].Addr(), tried)
			done := open(t, at)
			<-tried // more than once
			for _, w := range wires {
				if err := w.Accept(); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				t.Errorf("a store that is there after some tries: %v", err)
			}
			if s.name == "zklock" {
				behind += "?timeout=300ms" // in which a session that was cut off is looked for again
			}
			for _, bytes := range []int{1, 30, 90, 250, 420, 480, 540, 600, 700, 2000, 8000} {
				d, err := driver.OpenURL(t.Context(), moved(behind, func(addr string) string { return cutsOff(t, addr, bytes) }))
				if err == nil {
					_ = d.Close(t.Context())
				} else if !errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrUnable) {
					t.Errorf("cut off after %d bytes: %v, want that nothing was sent", bytes, err)
				}
			}
		})
	}
}

// hangUp listens at addr, hangs up on whoever comes, and goes when two have come.
func hangUp(t *testing.T, addr string, tried chan<- struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(tried)
		defer l.Close()
		for range 2 {
			_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
			if c, err := l.Accept(); err == nil {
				_ = c.Close()
			}
		}
	}()
}

// A service that is started before its store goes on when that is up. Whoever opens cannot be back before.
func TestOpenBeforeTheServerStarts(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, o servertest.Options) (*servertest.Server, error){
		"redis": servertest.Start, "postgres": servertest.StartPostgres, "etcd": servertest.StartEtcd,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := start(ctx, servertest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if err := s.Stop(); err != nil { // which keeps the port
				t.Fatal(err)
			}
			addr := s.Addr()
			at := map[string]string{
				"redis": "redis://" + addr, "postgres": "postgres://postgres@" + addr + "/postgres?sslmode=disable&technique=session", "etcd": "etcd://" + addr,
			}[name]
			tried := make(chan struct{})
			hangUp(t, addr, tried)
			done := open(t, at)
			<-tried
			select {
			case err := <-done:
				t.Fatalf("there is no server: %v, want it to be waited for", err)
			default:
			}
			if err := s.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("a server that has started: %v", err)
			}
		})
	}
}

// A login that is refused is told by the first try: over one connection, and as what it is.
func TestOpenTellsARefusedLoginAtOnce(t *testing.T) {
	for name, url := range map[string]func() string{
		"redis":    func() string { return "redis://:hunter2@" + servertest.Redis(t, "--requirepass", "right").Addr() },
		"redisson": func() string { return "redisson://:hunter2@" + servertest.Redis(t, "--requirepass", "right").Addr() },
		"postgres": func() string { return strings.Replace(servertest.Postgres(t).URL(), "postgres@", "nobody:hunter2@", 1) },
		"mysql":    func() string { return strings.Replace(servertest.MariaDB(t).URL(), "root@", "nobody:hunter2@", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, wires := wired(t, url())
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := interlock.Open(ctx, at, &interlock.Options{Patience: time.Hour})
			if !errors.Is(err, driver.ErrRefused) || errors.Is(err, interlock.ErrUnavailable) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v, want it refused", err)
			}
			if n := wires[0].Count().Connections; n != 1 {
				t.Errorf("%d connections, want one", n)
			}
		})
	}
}

// cutsOff is a way to a server that ends when so many bytes have come from it; nobody listens there any more then.
func cutsOff(t *testing.T, server string, bytes int) (addr string) {
	t.Helper()
	l, err := wire.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var left atomic.Int64
	left.Store(int64(bytes))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", server)
			if err != nil {
				_ = c.Close()
				return
			}
			go func() {
				_, _ = io.Copy(s, c)
				_ = s.Close()
			}()
			go func() {
				defer c.Close()
				b := make([]byte, 64)
				for {
					n, err := s.Read(b)
					if _, failed := c.Write(b[:n]); err != nil || failed != nil {
						return
					}
					if left.Add(-int64(n)) <= 0 {
						_ = l.Close()
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
