package pglock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// linger is how long a subscription stays when no claim waits any more. A NOTIFY wakes all
// listeners of a database, whatever their channel: a hundred idle ones cost four tenths of the
// handoffs.
const linger = 5 * time.Second

// pause is how long claims poll after a subscription has failed, before the next one is tried.
const pause = 5 * time.Second

var (
	errClosed         = fmt.Errorf("pglock: %w: the driver is closed", driver.ErrNotSent)
	errNoSubscription = fmt.Errorf("pglock: listen: %w: there is no connection to listen over", driver.ErrNotSent)
	errNotReceived    = errors.New("what is said to this connection is not heard: want by listen the server itself, without a pooler, and the store's database")
)

// subscription is the connection that receives notifications, from before it is made until it has
// ended. It is not of the pool, since it is kept; it is dialled as the pool dials.
type subscription struct {
	ready chan struct{} // closed when it listens, or has failed: then err says why
	done  chan struct{} // closed when it has ended
	err   error
}

// notifier is the subscription of a driver, if there is one, and the claims that are registered for
// its messages. It implements rowline.Notifier.
type notifier struct {
	*server
	channel string
	ctx     context.Context //nolint:containedctx // of the connection; ends with the driver

	mu      sync.Mutex
	current *subscription             // nil where there is none
	retry   time.Time                 // when the next subscription is tried, since the last one failed
	waiting map[string]*rowline.Claim // by nonce
}

// nonce is the name of a claim in messages: see the schema's function of that name.
func nonce(id string) string {
	sum := sha256.Sum256([]byte("interlock wake:" + id))
	return hex.EncodeToString(sum[:16])
}

// Subscribe implements rowline.Notifier.
func (s *notifier) Subscribe(c *rowline.Claim) rowline.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[nonce(c.ID)] = c
	if s.current != nil {
		select {
		case <-s.current.ready:
			return s.current.done
		default:
		}
	}
	return nil
}

// Unsubscribe implements rowline.Notifier.
func (s *notifier) Unsubscribe(c *rowline.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, nonce(c.ID))
}

// Listen implements rowline.Notifier.
func (s *notifier) Listen(ctx context.Context, _ *rowline.Claim) (rowline.Subscription, error) {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return nil, errClosed
	}
	sub := s.current
	if sub == nil && time.Now().Before(s.retry) {
		s.mu.Unlock()
		return nil, errNoSubscription
	}
	if sub == nil {
		sub = &subscription{ready: make(chan struct{}), done: make(chan struct{})}
		s.current = sub
		go s.run(sub)
	}
	s.mu.Unlock()
	select {
	case <-sub.ready:
		if sub.err != nil {
			return nil, fmt.Errorf("pglock: listen: %w: %w", driver.ErrNotSent, sub.err)
		}
		return sub.done, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("pglock: listen: %w: %w", driver.ErrNotSent, ctx.Err())
	}
}

// awaitEnd returns when the subscription of a closed driver has ended.
func (s *notifier) awaitEnd() {
	s.mu.Lock()
	sub := s.current
	s.mu.Unlock()
	if sub != nil {
		<-sub.done
	}
}

// run connects and listens until no claim waits any more, or the connection ends. Claims that wait
// then ask again.
func (s *notifier) run(sub *subscription) {
	conn, err := s.dial()
	sub.err = err
	if err != nil {
		go s.options.Logger.Warn("pglock: claims that wait ask, since nobody can tell them", "error", err) // so that a log that blocks does not block the claims
		s.mu.Lock()
		s.current, s.retry = nil, time.Now().Add(pause)
		s.mu.Unlock()
	}
	close(sub.ready)
	if err == nil {
		s.follow(conn.PgConn())
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = conn.Close(ctx)
		cancel()
	}
	close(sub.done)
}

// follow receives notifications, which OnNotification handles.
func (s *notifier) follow(pg *pgconn.PgConn) {
	for idle := false; ; {
		ctx, cancel := context.WithTimeout(s.ctx, linger)
		err := pg.WaitForNotification(ctx) // OnNotification has handled it
		cancel()
		quiet := err != nil && pgconn.Timeout(err) && s.ctx.Err() == nil
		s.mu.Lock()
		nobody := len(s.waiting) == 0
		if err != nil && !quiet || quiet && nobody && idle {
			s.current = nil
			s.mu.Unlock()
			return
		}
		idle = quiet && nobody
		s.mu.Unlock()
	}
}

// prove checks that notifications arrive over a connection which a pooler makes, or which Listen
// names. It checks first that the connection keeps its backend, since a shared one must not be left
// listening. A notification must arrive also without the answer to a query.
func (s *notifier) prove(ctx context.Context) error {
	conn, err := s.connect(ctx, func(*pgx.ConnConfig) {})
	if err != nil {
		return err
	}
	err = s.keeps(ctx, conn)
	_ = conn.Close(ctx)
	if err != nil {
		return err
	}
	if conn, err = s.dial(); err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if err = s.publish(ctx); err != nil {
		return err
	}
	if err = conn.PgConn().WaitForNotification(ctx); err != nil && ctx.Err() != nil {
		err = errNotReceived
	}
	return err
}

// dial makes the connection and proves that what is sent over the source arrives: Listen may name
// another database. The proof needs no waiting: a server has passed a NOTIFY to the listener's
// backend before it answers, and that backend sends it on before it answers its next query.
func (s *notifier) dial() (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.options.Timeout)
	defer cancel()
	received := false
	conn, err := s.connect(ctx, func(config *pgx.ConnConfig) {
		config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
			received = true
			s.receive(n.Payload)
		}
	})
	if err != nil {
		return nil, err
	}
	// The settings are those of this connection of ours, as far as the server knows them.
	listen := `listen "` + s.channel + `"`
	_, err = conn.PgConn().Exec(ctx, "set statement_timeout = 0; select set_config(name, '0', false) from pg_settings where name = 'idle_session_timeout'; "+listen).ReadAll()
	if err == nil {
		err = s.publish(ctx)
	}
	if err == nil {
		_, err = conn.PgConn().Exec(ctx, listen).ReadAll() // which changes nothing
	}
	if err == nil && !received {
		err = errNotReceived
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

// publish sends this process a message without content. It is not bound by the pool's
// statement_timeout, which has nothing to do with whether the message arrives.
func (s *notifier) publish(ctx context.Context) error {
	_, err := s.send(ctx, message{sql: "set local statement_timeout = 0; select pg_notify('" + s.channel + "', 'heard')"})
	return err
}

// receive handles a message: "h nonce token" for a claim that is held, "r nonce" for one that
// should ask again.
func (s *notifier) receive(payload string) {
	f := strings.Fields(payload)
	if len(f) < 2 {
		return
	}
	s.mu.Lock()
	c := s.waiting[f[1]]
	s.mu.Unlock()
	switch {
	case c == nil:
	case f[0] == "h" && len(f) == 3:
		c.Granted(uint64(number(f[2]))) //nolint:gosec // never negative
	case f[0] == "r":
		c.Again()
	}
}
