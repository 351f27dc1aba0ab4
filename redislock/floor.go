package redislock

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/internal/mutant"
	"github.com/interlock-go/interlock/redisconn"
)

// floor is the server's time in µs when the connection for commands was made: see the script take. A server loses its
// counters by a restart or a failover, and both end the connection, so a counter above the floor is one that it has not
// lost. Where the client does not tell of new connections, and on a cluster, whose servers have a clock each, there is no
// floor, and every grant asks for the time.
type floor struct {
	at  atomic.Pointer[mark]
	mu  sync.Mutex // of who asks
	one bool

	none bool // on a cluster
}

type mark struct {
	generation uint64
	us         string
}

// get returns the floor as the script takes it, and the generation of connections that it is of.
func (f *floor) get(c redisconn.Conn) (us string, generation uint64) {
	if f.none {
		return "0", 0
	}
	generation = c.Generation()
	if m := f.at.Load(); m != nil && generation != 0 && (m.generation == generation || mutant.On("R1")) {
		return m.us, generation
	}
	return "0", generation
}

// ask asks the server for its time.
func (f *floor) ask(ctx context.Context, c redisconn.Conn) error {
	before := c.Generation()
	v, err := c.Do(ctx, redisconn.Command{Words: []string{"TIME"}})
	if err != nil && redisconn.Classify(err) == err { //nolint:errorlint // not an answer: the connection had ended unnoticed
		before = c.Generation()
		v, err = c.Do(ctx, redisconn.Command{Words: []string{"TIME"}})
	}
	if err != nil {
		return err
	}
	t, _ := v.([]any)
	if before == 0 || before != c.Generation() || len(t) != 2 || f.none {
		return nil
	}
	s, _ := t[0].(string)
	us, _ := t[1].(string)
	seconds, err1 := strconv.ParseInt(s, 10, 64)
	micros, err2 := strconv.ParseInt(us, 10, 64)
	if err1 == nil && err2 == nil {
		f.at.Store(&mark{before, strconv.FormatInt(seconds*1e6+micros, 10)})
	}
	return nil
}

// renew asks again after a new connection was made, once at a time.
func (f *floor) renew(ctx context.Context, c redisconn.Conn) {
	f.mu.Lock()
	busy := f.one
	f.one = true
	f.mu.Unlock()
	if busy {
		return
	}
	go func() {
		_ = f.ask(ctx, c) // without it every grant asks for the time
		f.mu.Lock()
		f.one = false
		f.mu.Unlock()
	}()
}
