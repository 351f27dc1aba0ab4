package mysqlwire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/interlock-go/interlock/internal/connlock"
	"github.com/interlock-go/interlock/internal/connlock/pipetest"
	"github.com/interlock-go/interlock/internal/mysqlwire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// forms are the two: over a stream of our own, and over a client that nobody can look into.
var forms = map[string]func(context.Context, string, string) (net.Conn, error){"stream": mysqlwire.Dial, "opaque": nil}

// piped makes a pipe to an address, and returns its number in the server and what is closed at its end.
func piped(t *testing.T, addr, form string) (p *connlock.Pipe, id string, end <-chan struct{}) {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.Logger, c.DialFunc = "root", "tcp", addr, &mysql.NopLogger{}, forms[form]
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	w, err := mysqlwire.Connect(t.Context(), connector)
	if err != nil {
		t.Fatal(err)
	}
	if id, err = w.Ask(t.Context(), "select connection_id()"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	p = connlock.NewPipe(w, time.Minute, sync.OnceFunc(func() { close(ended) }))
	t.Cleanup(p.Close)
	return p, id, ended
}

// echo is answered by its argument, a while later.
func echo(text string, ms int) connlock.Query {
	return connlock.Query{SQL: fmt.Sprintf("select '%s' from (select sleep(%d / 1000)) s", text, ms)}
}

// Everybody has his own answer, once, in the order of what was asked, whoever reads and whoever has gone.
func TestEverybodyHasHisAnswer(t *testing.T) {
	t.Parallel()
	s := servertest.MariaDB(t)
	for form := range forms {
		p, _, _ := piped(t, s.Addr(), form)
		pipetest.Share(t, p, echo)
		if _, err := p.Fetch(t.Context(), connlock.Query{SQL: "selekt"}); errors.Is(err, connlock.ErrEnded) || !errors.As(err, new(*mysql.MySQLError)) {
			t.Errorf("%s, what is no statement: %v", form, err)
		}
		if field, err := p.Fetch(t.Context(), echo("after", 0)); err != nil || field != "after" {
			t.Errorf("%s, after an error: %q, %v", form, field, err)
		}
		if field, err := p.Fetch(t.Context(), connlock.Query{SQL: "select null"}); err != nil || field != "" {
			t.Errorf("%s, null: %q, %v", form, field, err)
		}
	}
}

// The end is told at once, also while nobody asks where the stream is ours; whoever waits hears of it, and whoever comes later.
func TestTheEndIsTold(t *testing.T) {
	t.Parallel()
	s := servertest.MariaDB(t)
	killer, _, _ := piped(t, s.Addr(), "stream")
	for form := range forms {
		for _, asked := range []bool{false, true} {
			p, id, end := piped(t, s.Addr(), form)
			waits := make(chan error, 1)
			if asked {
				p.Ask(echo("never", 600_000), func(r connlock.Reply) { waits <- r.Err })
			}
			if _, err := killer.Fetch(t.Context(), connlock.Query{SQL: "kill " + id}); err != nil {
				t.Fatal(err)
			}
			if form == "stream" || asked {
				select {
				case <-end:
				case <-time.After(30 * time.Second):
					t.Fatalf("%s, asked %v: the end of the connection is not noticed", form, asked)
				}
			}
			if asked {
				if err := <-waits; err == nil {
					t.Errorf("%s: who waited hears of no error", form)
				}
			}
			if _, err := p.Fetch(t.Context(), echo("later", 0)); !errors.Is(err, connlock.ErrEnded) {
				t.Errorf("%s: who comes later hears %v", form, err)
			}
		}
	}
}

// An answer that comes in pieces is read whole, also by one who is to go meanwhile, and the connection stays.
func TestAnAnswerInPieces(t *testing.T) {
	t.Parallel()
	s := servertest.MariaDB(t)
	addr := inPieces(t, s.Addr())
	for form := range forms {
		p, _, _ := piped(t, addr, form)
		for i := range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Millisecond)
			answer := make(chan connlock.Reply, 1)
			_ = p.Call(ctx, echo("pieces", 0), func(r connlock.Reply) { answer <- r })
			cancel()
			if r := <-answer; r.Err != nil || r.Field != "pieces" {
				t.Fatalf("%s: answer %q, %v; want it whole", form, r.Field, r.Err)
			}
		}
	}
}

// inPieces is a way to a server by which its answers come in pieces, of which the first ones are of a byte.
func inPieces(t *testing.T, addr string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}()
			go func() {
				defer from.Close()
				buffer := make([]byte, 4096)
				for {
					n, err := to.Read(buffer)
					for i := range min(n, 6) {
						_, _ = from.Write(buffer[i : i+1])
						time.Sleep(8 * time.Millisecond) // longer than who reads does not mind his context
					}
					_, _ = from.Write(buffer[min(n, 6):n])
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
