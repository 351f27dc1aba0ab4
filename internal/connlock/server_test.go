package connlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// server has locks that live with connections: mutexes, each with a line of its own.
type server struct {
	mu     sync.Mutex
	lines  map[string][]*link // by key; the first one has it
	open   int
	dialed int
	asked  map[string]int // by name of the method
	slow   time.Duration  // until a statement that waits is seen
	quiet  chan struct{}  // Ping answers when it is closed, where it is not nil
	tokens uint64

	cancelling func(l *link) // before a cancel arrives
	between    func(l *link) // before a Hand arrives, and after a Leave
}

// link is a connection as the server has it.
type link struct {
	*server
	ended   func()
	granted chan bool     // of the Wait under way
	begins  chan struct{} // closed when the server comes to it
	over    chan struct{} // closed when it was answered
	closed  chan struct{}
}

func newServer() *server { return &server{lines: map[string][]*link{}, asked: map[string]int{}} }

// session opens a session of three waiters.
func (f *server) session(t *testing.T, as Store) *Session {
	t.Helper()
	_, s := f.start(t, as)
	return s
}

// start opens a session of a driver of its own.
func (f *server) start(t *testing.T, as Store) (*Sessions, *Session) {
	t.Helper()
	d := New(Config{Store: as, Package: "test", Technique: "test", Timeout: 5 * time.Second, MaxTTL: time.Hour, MaxWaiting: 3})
	opened, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := opened.(Requeuer); ok {
		return d, r.Session
	}
	return d, opened.(*Session)
}

func (f *server) KeyOf(c driver.Claim) (string, error) { return c.Name, nil }

func (f *server) Dial(_ context.Context, _ driver.Spec, ended func()) (Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	f.dialed++
	return &link{server: f, ended: ended, closed: make(chan struct{})}, nil
}

// Stands shows of a connection its address.
func (f *server) Stands(_ context.Context, name string) (all []Standing, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, l := range f.lines[name] {
		at := Standing{Conn: fmt.Sprintf("%p", l), Also: -1}
		at.PublicID, at.Held = at.Conn, i == 0
		for _, line := range f.lines {
			if slices.Contains(line, l) {
				at.Also++
			}
		}
		all = append(all, at)
	}
	return all, nil
}

func (f *server) End(_ context.Context, conn string) error {
	f.mu.Lock()
	all := slices.Concat(slices.Collect(maps.Values(f.lines))...)
	f.mu.Unlock()
	for _, l := range all {
		if fmt.Sprintf("%p", l) == conn {
			l.Close()
			l.ended()
			return nil
		}
	}
	return errors.New("no such connection")
}

// call notes a request, and tells whether the connection is there. The mutex is held from then on.
func (l *link) call(name string) (err error) {
	l.mu.Lock()
	l.asked[name]++
	select {
	case <-l.closed:
		err = ErrEnded
	default:
	}
	return err
}

func (l *link) grant() driver.Grant {
	l.tokens++
	return driver.Grant{Held: true, Fence: l.tokens}
}

func (l *link) Try(_ context.Context, of Lock, then func(driver.Grant, error)) error {
	then(l.try(of))
	return nil
}

func (l *link) try(of Lock) (driver.Grant, error) {
	err := l.call("Try")
	defer l.mu.Unlock()
	if err != nil || len(l.lines[of.Key]) > 0 && l.lines[of.Key][0] != l { // what it has it is given again
		return driver.Grant{}, err
	}
	l.lines[of.Key] = append([]*link{l}, l.lines[of.Key]...)
	return l.grant(), nil
}

func (l *link) Wait(of Lock, then func(driver.Grant, error)) {
	begins, over, slow := make(chan struct{}), make(chan struct{}), l.slow
	l.begins, l.over = begins, over
	go func() {
		defer close(over)
		time.Sleep(slow)
		close(begins)
		then(l.wait(of))
	}()
}

func (l *link) Begins(ctx context.Context) error { return l.await(ctx, l.begins) }

func (l *link) Await(ctx context.Context) error { return l.await(ctx, l.over) }

func (l *link) await(ctx context.Context, event <-chan struct{}) error {
	if end, ok := ctx.Deadline(); ok {
		timed, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ctx = timed
	}
	select {
	case <-event:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) wait(of Lock) (driver.Grant, error) {
	err := l.call("Wait")
	if err != nil {
		l.mu.Unlock()
		return driver.Grant{}, err
	}
	l.lines[of.Key] = append(l.lines[of.Key], l)
	l.granted = make(chan bool, 2)
	if len(l.lines[of.Key]) == 1 {
		l.granted <- true
	}
	granted := l.granted
	l.mu.Unlock()
	select {
	case got := <-granted:
		if !got {
			return driver.Grant{}, errors.New("cancelled")
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.grant(), nil
	case <-l.closed:
		return driver.Grant{}, ErrEnded
	}
}

func (l *link) Cancel(context.Context) error {
	if l.cancelling != nil {
		l.cancelling(l)
	}
	err := l.call("Cancel")
	defer l.mu.Unlock()
	for key, line := range l.lines {
		if i := slices.Index(line, l); i > 0 {
			l.lines[key] = slices.Delete(line, i, i+1)
			l.granted <- false
		}
	}
	return err
}

func (l *link) Waits(_ context.Context, other Conn) (bool, error) {
	err := l.call("Waits")
	defer l.mu.Unlock()
	return l.waits(other.(*link)), err
}

// waits reports whether a connection stands in a line, and does not have the lock. The mutex is held.
func (f *server) waits(other *link) bool {
	for _, line := range f.lines {
		if slices.Index(line, other) > 0 && line[0] != other {
			return true
		}
	}
	return false
}

func (l *link) Leave(_ context.Context, of Lock, then func(bool, error)) error {
	then(l.giveBack(of))
	return nil
}

func (l *link) giveBack(of Lock) (bool, error) {
	err := l.call("Leave")
	had := err == nil && l.leave(of.Key)
	l.mu.Unlock()
	if l.between != nil && had {
		hook := l.between
		l.between = nil // which may leave, too
		hook(l)
		l.between = hook
	}
	return had, err
}

// leave takes the connection out of a line once, and lets the next one in. The mutex is held.
func (l *link) leave(key string) bool {
	line := l.lines[key]
	i := slices.Index(line, l)
	if i < 0 {
		return false
	}
	line = slices.Delete(line, i, i+1)
	l.lines[key] = line
	if i == 0 && len(line) > 0 && line[0] != l {
		line[0].granted <- true
	}
	return i == 0
}

func (l *link) Hand(_ context.Context, of Lock, other Conn, then func(Handed, error)) error {
	then(l.hand(of, other))
	return nil
}

func (l *link) hand(of Lock, other Conn) (h Handed, err error) {
	if l.between != nil {
		l.between(l)
	}
	err = l.call("Hand")
	defer l.mu.Unlock()
	if err == nil && l.waits(other.(*link)) {
		h.Stands, h.Had = true, l.leave(of.Key)
		h.Has = l.lines[of.Key][0] == other.(*link)
	}
	return h, err
}

func (l *link) Ping() error {
	err := l.call("Ping")
	quiet := l.quiet
	l.mu.Unlock()
	if quiet != nil {
		<-quiet
	}
	return err
}

func (l *link) Free(context.Context) error {
	err := l.call("Free")
	defer l.mu.Unlock()
	for key := range l.lines {
		for l.leave(key) {
		}
	}
	return err
}

// Close is the end, also as others see it.
func (l *link) Close() {
	if l.call("Close") == nil {
		close(l.closed)
		l.open--
		for key := range l.lines {
			for slices.Contains(l.lines[key], l) {
				l.leave(key)
			}
		}
	}
	l.mu.Unlock()
}

// has is the connection that has a key.
func (f *server) has(key string) *link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines[key][0]
}

func (f *server) nobody(t *testing.T, key string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.lines[key]); n != 0 {
		t.Errorf("%d connections have %q or wait for it, want none", n, key)
	}
}

func (f *server) holdingOf(t *testing.T, s *Session) *link {
	t.Helper()
	c, err := s.holding(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.Conn.(*link)
}

// count is how often a method was called.
func (f *server) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[name]
}

// rows is a server whose locks need a connection each.
type rows struct {
	*server
	absent  bool
	unlucky error
}

func (r *rows) Prepare(holding Conn, _ Lock) (bool, error) { return !r.absent, holding.Ping() }

func (r *rows) Draw(holding Conn, _ Lock) (uint64, error) {
	return 77, errors.Join(r.unlucky, holding.Ping())
}
