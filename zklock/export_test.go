package zklock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Once is New by one try.
var Once = newDriver

// SessionOf is the number and the password of the servers' session behind a session.
func SessionOf(d driver.Driver, id string) (int64, []byte) {
	for _, s := range d.(*Driver).sessions.All() {
		if s.id == id {
			return s.client.Session()
		}
	}
	return 0, nil
}

// Faulty says what is wrong with a version of ZooKeeper in an ensemble.
var Faulty = faulty

// Many says how many names are many for the doctor.
func Many(d driver.Driver, n int) { d.(*Driver).many = n }

// Denying takes a claim out of line as a try that came too late. Once the servers are asked it
// calls asked, with what looks at the claims that the session has.
func Denying(ctx context.Context, of driver.Session, id string, asked func(check func(context.Context) error)) error {
	s := of.(*session)
	s.mu.Lock()
	c := s.claims[id]
	s.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- s.deny(ctx, c) }()
	for disowned := false; !disowned && ctx.Err() == nil; {
		s.mu.Lock()
		disowned = !c.watched
		s.mu.Unlock()
	}
	asked(func(ctx context.Context) error { return s.check(ctx) })
	return <-done
}
