package pglock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/internal/connlock"
	"github.com/interlock-go/interlock/internal/connlock/pipetest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// piped makes a pipe to a server, and returns what is closed at its end.
func piped(t *testing.T, s *servertest.Server) (*connlock.Pipe, <-chan struct{}) {
	t.Helper()
	return pipedOver(t, s, func(nc net.Conn) net.Conn { return nc })
}

func pipedOver(t *testing.T, s *servertest.Server, over func(net.Conn) net.Conn) (*connlock.Pipe, <-chan struct{}) {
	t.Helper()
	config, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return over(nc), err
	}
	pc, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	p := connlock.NewPipe(newWire(pc.PgConn()), time.Minute, sync.OnceFunc(func() { close(end) }))
	t.Cleanup(p.Close)
	return p, end
}

// echo is answered by its argument, a while later.
func echo(text string, ms int) connlock.Query {
	return connlock.Query{SQL: "select $1::text from (select pg_sleep($2::float8)) s", Args: [][]byte{[]byte(text), fmt.Append(nil, float64(ms)/1000)}, Tells: ms > 2}
}

// Everybody has his own answer, once, in the order of what was asked, whoever reads and whoever has
// gone.
func TestPipe(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	for _, over := range []func(net.Conn) net.Conn{
		func(nc net.Conn) net.Conn { return nc },
		func(nc net.Conn) net.Conn { return tunnel{nc} },
	} {
		p, _ := pipedOver(t, s, over)
		pipetest.Share(t, p, echo)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := p.Fetch(ctx, echo("late", 600_000)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who does not wait for an answer: %v", err)
		}
		cancel()
	}
}

// tunnel is a connection that knows no deadlines.
type tunnel struct{ net.Conn }

var errDeadline = errors.New("no deadlines")

func (tunnel) SetDeadline(time.Time) error      { return errDeadline }
func (tunnel) SetReadDeadline(time.Time) error  { return errDeadline }
func (tunnel) SetWriteDeadline(time.Time) error { return errDeadline }

// A statement is prepared once, and once more after an error.
func TestPipePrepares(t *testing.T) {
	t.Parallel()
	p, _ := piped(t, servertest.Postgres(t))
	q := connlock.Query{SQL: "select nextval($1::text::regclass)", Args: [][]byte{[]byte("numbers")}}
	if _, err := p.Fetch(t.Context(), q); code(err) != "42P01" {
		t.Fatalf("a sequence that is not there: %v", err)
	}
	if _, err := p.Fetch(t.Context(), connlock.Query{SQL: "create sequence numbers"}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if field, err := p.Fetch(t.Context(), q); err != nil || field != fmt.Sprint(i+1) {
			t.Errorf("%q, %v; want %d", field, err, i+1)
		}
	}
	if _, err := p.Fetch(t.Context(), connlock.Query{SQL: "select from nowhere where $1", Args: [][]byte{{'t'}}}); code(err) != "42P01" {
		t.Errorf("a statement that cannot be prepared: %v", err)
	}
	if n, err := p.Fetch(t.Context(), connlock.Query{SQL: "select count(*) from pg_prepared_statements where statement like '%nextval%'"}); err != nil || n != "2" {
		t.Errorf("%s statements are prepared, %v; want the first and one after its error", n, err)
	}
}

// The end is told at once, also while nobody asks; whoever waits hears of it, and whoever comes
// later.
func TestPipeEnds(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	killer, _ := piped(t, s)
	for _, asked := range []bool{false, true} {
		p, end := piped(t, s)
		var pid string
		for start := time.Now(); time.Since(start) < 20*time.Millisecond; { // whoever listens since the beginning has gone
			var err error
			if pid, err = p.Fetch(t.Context(), connlock.Query{SQL: ping}); err != nil {
				t.Fatal(err)
			}
		}
		waits := make(chan error, 1)
		if asked {
			p.Ask(echo("never", 600_000), func(r connlock.Reply) { waits <- r.Err })
		}
		if _, err := killer.Fetch(t.Context(), connlock.Query{SQL: "select pg_terminate_backend(" + pid + ")"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-end:
		case <-time.After(30 * time.Second):
			t.Fatal("the end of the connection is not noticed")
		}
		if asked {
			if err := <-waits; !errors.Is(err, connlock.ErrEnded) || !strings.Contains(err.Error(), "administrator") {
				t.Errorf("who waited hears %v", err)
			}
		}
		if _, err := p.Fetch(t.Context(), connlock.Query{SQL: ping}); !errors.Is(err, connlock.ErrEnded) {
			t.Errorf("who comes later hears %v", err)
		}
	}
}
