package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A tried store is memory that the test can stop and cut.
type tried struct {
	*memlock.Driver

	mu    sync.Mutex
	fails error         // what requests are answered by
	gate  chan struct{} // what looks at a name wait for
	asked chan struct{} // gets a value when one waits
	lists int           // how often all names were asked for
	opens error         // why it cannot be opened
	slow  time.Duration // how long a list takes

	panics bool             // whatever it is asked
	finds  []driver.Finding // what its checks find
}

var triedStores sync.Map // by URL

func init() {
	driver.Register("tried", func(ctx context.Context, u *url.URL) (driver.Driver, error) {
		s, ok := triedStores.Load(u.String())
		if !ok {
			return nil, &driver.URLError{Err: errors.New("no such store in this test")}
		}
		d := s.(*tried)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.fault()
		return d, d.opens
	})
}

// newTried returns a store and its URL.
func newTried(t *testing.T) (*tried, string) {
	t.Helper()
	s := &tried{Driver: memlock.New(), asked: make(chan struct{}, 100)}
	at := fmt.Sprintf("tried:%p", s)
	triedStores.Store(at, s)
	t.Cleanup(func() { triedStores.Delete(at) })
	return s, at
}

// fault panics where that is wanted, with mu held, which is left to the caller.
func (s *tried) fault() {
	if s.panics {
		panic("a fault of the driver")
	}
}

// Examine implements driver.Examiner.
func (s *tried) Examine(context.Context, driver.Exam) ([]driver.Finding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault()
	return s.finds, nil
}

// wanted returns what requests are answered by, and what they wait for.
func (s *tried) wanted() (gate chan struct{}, fails error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault()
	return s.gate, s.fails
}

func (s *tried) answer(ctx context.Context) error {
	gate, fails := s.wanted()
	if gate != nil {
		s.asked <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fails
}

func (s *tried) Line(ctx context.Context, name string) (driver.Line, error) {
	if err := s.answer(ctx); err != nil {
		return driver.Line{}, err
	}
	return s.Driver.Line(ctx, name)
}

func (s *tried) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	_, fails := s.wanted()
	s.mu.Lock()
	s.lists++
	slow := s.slow
	s.mu.Unlock()
	pause(ctx, slow)
	if fails != nil {
		return nil, fails
	}
	return s.Driver.Lines(ctx, prefix)
}

// Close leaves the store to the test.
func (s *tried) Close(context.Context) error { return nil }

func (s *tried) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// hold has a process hold a name until the test ends.
func (s *tried) hold(t *testing.T, name string) *interlock.Lease {
	t.Helper()
	c, err := interlock.New(s.Share(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Mutex(name).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Release() // also of one that was lost
		_ = c.Close()
	})
	return l
}

// running is a server of this test.
type running struct {
	*testing.T
	at    string // https://127.0.0.1:1234, without the prefix
	log   *lines
	end   context.CancelFunc
	ended chan error
}

// serves starts a server with these options, and ends it with the test.
func serves(t *testing.T, o *Options) *running {
	t.Helper()
	r := &running{T: t, log: &lines{}, ended: make(chan error, 1)}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	at := make(chan string, 1)
	o.Ready = func(u string) { at <- u }
	ctx, cancel := context.WithCancel(context.Background())
	r.end = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := Run(ctx, fill(o))
		r.ended <- err
		if err != nil {
			at <- ""
		}
	}()
	t.Cleanup(func() {
		cancel()
		if o.Drain == 0 {
			<-done
		}
	})
	u := <-at
	if u == "" {
		t.Fatalf("it does not serve: %v", <-r.ended)
	}
	r.at = strings.TrimSuffix(strings.TrimSuffix(u, "/"), o.Prefix)
	return r
}

// answer is what a request was answered by.
type answer struct {
	status int
	header http.Header
	body   string
}

var plainClient = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       time.Minute,
}

// ask makes a request. The headers are pairs of a name and a value.
func (r *running) ask(method, path, body string, headers ...string) answer {
	r.Helper()
	return r.askBy(plainClient, method, path, body, headers...)
}

func (r *running) askBy(c *http.Client, method, path, body string, headers ...string) answer {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.at+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := c.Do(req)
	if err != nil {
		r.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}
