package keepalive

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// Session is the core's side of one session at the store.
//
// # Trust
//
// A lease is guaranteed until
//
//	until = start of the last acknowledged request + Valid − grace
//
// where the request is the later of the session's last Renew (or Open) and the claim's own Acquire.
// Two timers keep that promise. The trust timer ends the contexts of leases at their until and does
// no I/O, so nothing that hangs can delay it. The renewal timer asks the store for more time, about
// three times in Valid less the largest grace. A try that gets no answer ends when half of the
// trust that it would extend is over, so that another one fits. Neither exists per lease.
//
//	        renew        renew        renew
//	 ├────────┴────────────┴────────────┴──────────────┬─────────────┤
//	start of the last                                until         Valid
//	acknowledged request                    contexts end │← grace →│ others may get in
//
// Renewed, held, lost and unknown stay four outcomes: only an answer moves until, only
// ErrSessionLost or the store's word ends a claim before its time, and an error in between changes
// nothing but the next try.
//
// Everything here is guarded by the mutex of the line unless said otherwise.
type Session struct {
	Driver driver.Session // never changes

	keeper *Keeper
	ctx    context.Context //nolint:containedctx // of its renewals; ended when over
	cancel context.CancelFunc

	Valid   time.Duration // for how long a renewal is good
	Renewed clock.Instant // start of the last answered Renew, or of Open
	Over    bool          // it has ended

	maxGrace time.Duration
	claims   map[string]Claim // every claim that may stand in the store's lines, by ID
	unwanted int              // of these, the ones that are being given back

	heartbeat *time.Timer // renewal, or with resting the end of an idle session
	resting   bool        // nothing to renew when the heartbeat last came
	idleSince clock.Instant
	asking    bool // the heartbeat waits for an answer
	failures  int  // renewals without an answer in a row

	trust trust
}

func newSession(k *Keeper, d driver.Session, started clock.Instant) *Session {
	s := &Session{
		keeper: k, Driver: d, Valid: d.Valid(), Renewed: started,
		claims: map[string]Claim{}, resting: true, idleSince: started, trust: trust{at: clock.Never},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.heartbeat = time.AfterFunc(k.Idle, s.beat)
	s.trust.timer = time.AfterFunc(time.Hour, s.expire)
	s.trust.timer.Stop()
	if n, ok := d.(driver.LossNotifier); ok {
		go s.hearLosses(n.Lost())
	}
	if n, ok := d.(driver.Nudger); ok {
		go s.hearNudges(n.Nudge())
	}
	return s
}

// hearLosses acts on what the store says by itself, until the session is over. A loss is handled
// before the next is received.
func (s *Session) hearLosses(lost <-chan driver.Loss) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case loss, ok := <-lost:
			s.keeper.mu.Lock()
			if ok {
				s.lost(loss)
			} else {
				s.End(driver.ErrSessionLost)
			}
			s.keeper.mu.Unlock()
			if !ok {
				return
			}
		}
	}
}

func (s *Session) lost(l driver.Loss) {
	if c := s.claims[l.ID]; c != nil {
		c.Gone(l.Err)
	}
}

// hearNudges renews when the store asks for it, in a goroutine of its own: a renewal that hangs
// holds up no loss.
func (s *Session) hearNudges(nudge <-chan struct{}) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-nudge:
			ctx, cancel := context.WithTimeout(s.ctx, s.keeper.TTL)
			_ = s.Renew(ctx) // the heartbeat goes on trying
			cancel()
		}
	}
}

// Track notes a claim that is about to be sent, with the longest grace that is wanted of it, and
// renews the session from now on. The mutex is held.
func (s *Session) Track(id string, c Claim, grace time.Duration) {
	s.claims[id] = c
	s.maxGrace = max(s.maxGrace, grace)
	if s.resting && !s.Over {
		s.resting = false
		s.heartbeat.Reset(s.period())
	}
}

// Untrack forgets a claim that certainly does not stand in the store any more, or whose time there
// is over. The mutex is held.
func (s *Session) Untrack(id string) {
	if s.claims[id] == nil {
		return
	}
	delete(s.claims, id)
	if len(s.claims) == 0 && !s.Over {
		s.idleSince = s.keeper.Clock.Now()
	}
}

// Claims returns how many claims the session has. The mutex is held.
func (s *Session) Claims() int { return len(s.claims) }

// Names returns the names of the claims. The mutex is held.
func (s *Session) Names() (names []string) {
	for _, c := range s.claims {
		name, _ := c.Status()
		names = append(names, name)
	}
	return names
}

// ReleaseInBackground releases a claim until the store has answered: its outcome is unknown, or
// nobody wants it any more. then is called, with the mutex held, when the session has forgotten it.
// The mutex is held.
func (s *Session) ReleaseInBackground(c driver.Claim, then func()) {
	if s.Over {
		return
	}
	release := func(ctx context.Context) error {
		if s.isOver() {
			return nil
		}
		_, err := s.Driver.Release(ctx, c)
		if errors.Is(err, driver.ErrSessionLost) {
			return nil
		}
		return err
	}
	done := func(certain bool) {
		s.keeper.mu.Lock()
		defer s.keeper.mu.Unlock()
		s.unwanted--
		if !certain && s.keeper.Cleaner.ended() {
			return // the client ends, and says that this is not confirmed
		}
		s.Untrack(c.ID)
		then()
	}
	s.unwanted++
	s.keeper.Cleaner.add(s.Valid, release, done)
}

func (s *Session) isOver() bool {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	return s.Over
}

// period is the time between renewals, up to a tenth shorter so that the clients of a fleet do not
// march in step.
func (s *Session) period() time.Duration {
	p := max(s.Valid-s.maxGrace, s.Valid/2) / 3
	return p - time.Duration(rand.Int64N(int64(p)/10+1))
}

// End is the loss of the whole session. The mutex is held.
func (s *Session) End(why error) {
	if s.Over {
		return
	}
	s.stop()
	for _, c := range s.claims {
		c.Gone(why)
	}
	clear(s.claims)
	s.keeper.Cleaner.Close(s.Driver)
}

// close closes a session that nobody needs any more.
func (s *Session) close() {
	s.stop()
	s.keeper.Cleaner.Close(s.Driver)
}

// abandon gives the session up when more claims that nobody wants have gathered in it than are
// given back at a time, and the store was silent for longer than it could keep anybody's trust:
// they go with the session's time, and do not become more for ever. Only to forget them would not
// do, because renewals that were not answered may have arrived.
func (s *Session) abandon() {
	if s.unwanted <= maxCleanups || s.keeper.Clock.Since(s.Renewed) < s.Valid {
		return
	}
	s.End(driver.ErrSessionLost)
}

// stop makes the session over for the core.
func (s *Session) stop() {
	s.Over = true
	s.cancel()
	s.heartbeat.Stop()
	s.trust.timer.Stop()
	if s.keeper.Session == s {
		s.keeper.Session = nil
	}
}
