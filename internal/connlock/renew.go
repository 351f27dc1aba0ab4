package connlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// Renew implements driver.Session. It sends a Ping over each connection that has a lock, side by
// side. One that is not answered in time is left running: to cancel it would close the connection.
func (s *Session) Renew(ctx context.Context) (driver.Renewal, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := s.renew(ctx)
	if err != nil {
		err = fmt.Errorf("%s: renew: %w", s.config.Package, err)
	}
	return r, err
}

func (s *Session) renew(ctx context.Context) (driver.Renewal, error) {
	c, err := s.holding(ctx) // shows that the server is there, whatever it has
	if err != nil {
		return driver.Renewal{}, err
	}
	renewed := map[*conn]bool{c: true}
	s.mu.Lock()
	for _, l := range s.claims {
		switch {
		case l.Leaving && l.Landing() == nil: // its Release had no answer, and perhaps nobody repeats it
			go func() { _, _ = s.release(context.Background(), l) }() //nolint:contextcheck // it outlives the renewal
		case l.state == held:
			renewed[l.conn] = true
		}
		l.unheard = l.state != held
	}
	s.mu.Unlock()
	answered := make(chan struct{}, len(renewed))
	for c := range renewed {
		go func() {
			s.ping(c)
			answered <- struct{}{}
		}()
	}
	for range renewed {
		select {
		case <-answered:
		case <-ctx.Done():
			return driver.Renewal{}, ctx.Err()
		}
	}
	if _, err = s.holding(ctx); err != nil { // what the old one had is lost, if it has ended
		return driver.Renewal{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := driver.Renewal{Valid: s.Valid()}
	for _, l := range s.claims {
		if l.state == gone && !l.Leaving {
			r.Lost = append(r.Lost, driver.Loss{ID: l.ID, Err: driver.ErrGone})
		}
	}
	return r, nil
}

// Close implements driver.Session. The end of a connection releases what it has; what is held is
// released before, so that who comes next has it when Close is back.
func (s *Session) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.mu.Lock()
	s.closed = true
	conns := slices.Clone(s.conns)
	freed := make(chan error, len(conns))
	for _, c := range conns {
		blocked := c.blocked
		go func() {
			var err error
			if !blocked || c.Cancel(ctx) == nil {
				err = c.Free(ctx)
			}
			if s.closeConn(c); errors.Is(err, ErrEnded) {
				err = nil
			}
			freed <- err
		}()
	}
	s.mu.Unlock()
	var err error
	for range conns {
		if e := <-freed; e != nil {
			err = fmt.Errorf("%s: close a session: %w", s.config.Package, e)
		}
	}
	s.onClose()
	return err
}
