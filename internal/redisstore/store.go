package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
	"github.com/interlock-go/interlock/redisconn"
)

// MinTTL is the shortest TTL of a session.
const MinTTL = 50 * time.Millisecond

// Grain is how much later than its end a claim that has run out may be seen to have: see
// driver.Traits.
const Grain = 50 * time.Millisecond

// Store is a Redis, of one master or several, as a driver uses it.
type Store struct {
	Name    string // of the driver's package; its errors begin with it
	Conn    redisconn.Conn
	Owned   bool // Conn was opened for the driver, and is closed with it
	Run     redisconn.Runner
	Server  Server
	Cluster bool          // it may have several masters
	Timeout time.Duration // of one request

	Ctx    context.Context //nolint:containedctx // of background work; ends with Close
	cancel context.CancelFunc
}

// Setup is how a Store is used.
type Setup struct {
	Name      string
	Tokens    string   // says in warnings what becomes of tokens when a master loses its data
	Commands  []string // that the layout needs
	Functions bool     // scripts are called as functions
	Strict    bool     // a configuration that can lose locks is an error
	Timeout   time.Duration
	Logger    *slog.Logger
}

// NewStore reads the configuration of the servers, and logs or refuses what can lose locks.
func NewStore(ctx context.Context, conn redisconn.Conn, o Setup) (*Store, error) {
	s := &Store{
		Name: o.Name, Conn: conn, Run: redisconn.Runner{Conn: conn, Functions: o.Functions},
		Cluster: conn.Node("x") != "", Timeout: o.Timeout,
	}
	var err error
	if s.Server, err = Inspect(ctx, conn, o.Tokens, o.Commands); err == nil {
		err = s.Server.Judge(o.Strict, o.Logger)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	s.Ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Open opens a session that create makes, if a server answers and the driver is not closed.
func Open[S interface {
	comparable
	driver.Session
}](ctx context.Context, s *Store, open *sessions.Set[S], spec driver.Spec, create func() S) (driver.Session, error) {
	if spec.TTL < MinTTL {
		return nil, fmt.Errorf("%s: TTL %v: want %v or more: %w", s.Name, spec.TTL, MinTTL, driver.ErrRefused)
	}
	session := create()
	ctx, cancel := context.WithTimeout(ctx, min(s.Timeout, spec.TTL))
	defer cancel()
	if err := Ping(ctx, s.Conn); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	if !open.Add(session) {
		return nil, s.errClosed()
	}
	return session, nil
}

func (s *Store) errClosed() error {
	return fmt.Errorf("%s: %w: the driver is closed", s.Name, driver.ErrNotSent)
}

// OnMoves calls moved, in the background, each time after slots have got other masters.
func (s *Store) OnMoves(moved func()) {
	moves := s.Conn.Moves()
	if moves == nil {
		return
	}
	go func() {
		for {
			select {
			case <-moves:
				moved()
			case <-s.Ctx.Done():
				return
			}
		}
	}()
}

// Close ends background work, then calls end, then closes the connection if it is the driver's. A
// script skips claims of processes without a subscription, so a process unsubscribes after its
// claims were released.
func (s *Store) Close(ctx context.Context, end func()) {
	s.cancel()
	end()
	if s.Owned {
		Close(ctx, s.Conn)
	}
}
