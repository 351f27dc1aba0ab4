package interlock

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/clock"
)

// session is the core's side of one session at the store: the only heartbeat anywhere, for all claims of its pool.
//
// # Trust
//
// A lease is guaranteed until
//
//	until = start of the last acknowledged request + Valid − grace
//
// where the request is the later of the session's last Renew (or Open) and the claim's own Acquire. Two timers keep
// that promise. The trust timer ends the contexts of leases at their until and does no I/O, so nothing that hangs can
// delay it. The renewal timer asks the store for more time, about three times in Valid less the largest grace. A try that
// gets no answer ends when half of the trust that it would extend is over, so that another one fits. Neither exists per lease.
//
//	        renew        renew        renew
//	 ├────────┴────────────┴────────────┴──────────────┬─────────────┤
//	start of the last                                until         Valid
//	acknowledged request                    contexts end │← grace →│ others may get in
//
// Renewed, held, lost and unknown stay four outcomes: only an answer moves until, only ErrSessionLost or the store's
// word ends a claim before its time, and an error in between changes nothing but the next try.
//
// Everything here is guarded by pool.mu unless said otherwise.
type session struct {
	pool   *pool
	driver driver.Session
	ctx    context.Context //nolint:containedctx // of its renewals; ended when over
	cancel context.CancelFunc

	valid    time.Duration
	renewed  clock.Instant // start of the last answered Renew, or of Open
	maxGrace time.Duration
	claims   map[string]*claim // every claim that may stand in the store's lines
	unwanted int               // of these, the ones that are being given back
	over     bool

	heartbeat *time.Timer // renewal, or with resting the end of an idle session
	resting   bool        // nothing to renew when the heartbeat last came
	idleSince clock.Instant
	asking    bool // the heartbeat waits for an answer
	failures  int  // renewals without an answer in a row

	trust    *time.Timer
	trustAt  clock.Instant // when the trust timer fires; 0 when it does not run
	earliest clock.Instant // no hold ends before it; 0 when there is none
}

func newSession(p *pool, d driver.Session, started clock.Instant) *session {
	s := &session{
		pool: p, driver: d, valid: d.Valid(), renewed: started,
		claims: map[string]*claim{}, resting: true, idleSince: started,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.heartbeat = time.AfterFunc(p.client.opts.Idle, s.beat)
	s.trust = time.AfterFunc(time.Hour, s.check)
	s.trust.Stop()
	if n, ok := d.(driver.LossNotifier); ok {
		go s.hearLosses(n.Lost())
	}
	if n, ok := d.(driver.Nudger); ok {
		go s.hearNudges(n.Nudge())
	}
	return s
}

// hearLosses acts on what the store says by itself, until the session is over. A loss is handled before the next is
// received.
func (s *session) hearLosses(lost <-chan driver.Loss) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case loss, ok := <-lost:
			s.pool.mu.Lock()
			if !ok {
				s.end(driver.ErrSessionLost)
			} else if c := s.claims[loss.ID]; c != nil {
				s.pool.gone(c, loss.Err)
			}
			s.pool.mu.Unlock()
			if !ok {
				return
			}
		}
	}
}

// hearNudges renews when the store asks for it, in a goroutine of its own: a renewal that hangs holds up no loss.
func (s *session) hearNudges(nudge <-chan struct{}) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-nudge:
			ctx, cancel := context.WithTimeout(s.ctx, s.pool.ttl)
			_ = s.renew(ctx) // the heartbeat goes on trying
			cancel()
		}
	}
}

// track notes a claim that is about to be sent, and has the session renewed from now on.
func (s *session) track(c *claim) {
	s.claims[c.ID] = c
	if w := c.line.first(); w != nil {
		s.maxGrace = max(s.maxGrace, w.grace)
	}
	if s.resting && !s.over {
		s.resting = false
		s.heartbeat.Reset(s.period())
	}
}

// untrack forgets a claim that certainly does not stand in the store any more, or whose time there is over.
func (s *session) untrack(c *claim) {
	if s.claims[c.ID] != c {
		return
	}
	delete(s.claims, c.ID)
	if len(s.claims) > 0 || s.over {
		return
	}
	s.idleSince = s.pool.client.clock.Now()
	if s.pool.isolated && len(s.pool.lines) == 0 {
		s.pool.forget()
	}
}

// period is the time between renewals, up to a tenth shorter so that the clients of a fleet do not march in step.
func (s *session) period() time.Duration {
	p := max(s.valid-s.maxGrace, s.valid/2) / 3
	return p - time.Duration(rand.Int64N(int64(p)/10+1))
}

// beat is the heartbeat: it renews while there are claims, and closes a session that had none for Options.Idle.
func (s *session) beat() {
	p := s.pool
	p.mu.Lock()
	if s.over {
		p.mu.Unlock()
		return
	}
	s.watch()
	if len(s.claims) == 0 {
		s.resting = true
		if left := p.client.opts.Idle - p.client.clock.Since(s.idleSince); left > 0 {
			s.heartbeat.Reset(left)
		} else {
			s.retire()
		}
		p.mu.Unlock()
		return
	}
	started := p.client.clock.Look() // before the deadline, which after a suspension would lie in the past
	asks := s.asks()
	if asks {
		p.silence.begin(started)
	}
	limit := oneTry(s.renewalDeadline().Sub(started), s.valid-s.maxGrace)
	s.asking = true
	p.mu.Unlock()

	ctx, cancel := context.WithTimeout(s.ctx, limit)
	err := s.renew(ctx)
	cancel()

	p.mu.Lock()
	defer p.mu.Unlock()
	if asks {
		defer p.silence.end()
	}
	s.asking = false
	if s.over {
		return
	}
	next := s.period() - p.client.clock.Since(started)
	if err != nil {
		s.failures++
		p.trouble(err)
		if s.abandon(); s.over {
			return
		}
		now := p.client.clock.Now()
		next = p.endOfPatience(now, now.Add(backoff(s.failures))).Sub(now)
	}
	s.heartbeat.Reset(max(next, time.Millisecond))
}

// oneTry is how long a call may last of which one without an answer must not be the last: half of the time that is left, so
// that another one fits, which has the rest.
func oneTry(left, whole time.Duration) time.Duration {
	if left > whole/2 {
		return left / 2
	}
	return left
}

// renewalDeadline is the end of the trust that a renewal would extend: a call must not last longer than what it
// renews, nor than the patience of those who wait. Where that has passed, or nobody holds anything, a renewal is as
// good as a new beginning.
func (s *session) renewalDeadline() clock.Instant {
	now := s.pool.client.clock.Now()
	deadline := s.pool.endOfPatience(now, now.Add(s.valid))
	if now.Before(s.earliest) {
		return min(deadline, s.earliest)
	}
	for _, c := range s.claims {
		for _, h := range c.holds {
			if u := c.until(h.grace); h.lost == nil && now.Before(u) && u.Before(deadline) {
				deadline = u
			}
		}
	}
	return deadline
}

// renew asks the store once, and takes in its answer. The pool's mutex must not be held.
func (s *session) renew(ctx context.Context) error {
	p := s.pool
	p.mu.Lock()
	asks := s.asks()
	p.mu.Unlock()
	started := p.client.clock.Look()
	r, err := s.driver.Renew(ctx)
	took := p.client.clock.Since(started)

	p.mu.Lock()
	claims, failures := len(s.claims), s.failures
	leases, slack := s.slack(started.Add(took)) // before the answer moves their end
	switch {
	case s.over:
		err = driver.ErrSessionLost
	case errors.Is(err, driver.ErrSessionLost):
		s.end(err)
	case err == nil:
		if asks {
			s.failures = 0
			p.answered(started.Add(took))
		}
		if !started.Before(s.renewed) { // else another has overtaken it, whose Valid counts from its own start
			s.renewed, s.valid = started, r.Valid
		}
		for _, loss := range r.Lost {
			if c := s.claims[loss.ID]; c != nil {
				p.gone(c, loss.Err)
			}
		}
		s.armTrust()
	}
	trust := s.renewed.Add(s.valid - s.maxGrace).Sub(p.client.clock.Now())
	p.mu.Unlock()

	if err == nil && asks && failures > 0 {
		p.client.log(slog.LevelInfo, "interlock: store answers again", "owner", p.client.opts.Owner, "failures", failures)
	}
	p.client.trace(func(t Tracer) {
		t.Renewed(context.Background(), Renewed{Claims: claims, Leases: leases, Took: took, Slack: slack, Trust: trust, Err: err})
	})
	return err
}

// slack counts the leases that are held, and returns what the one that has least had left of its trust at now. Only a tracer wants to know.
func (s *session) slack(now clock.Instant) (leases int, least time.Duration) {
	if s.pool.client.opts.Tracer == nil {
		return 0, 0
	}
	for _, c := range s.claims {
		for _, h := range c.holds {
			if h.lost != nil || len(h.leases) == 0 { // kept for its MinHold only, or about to be somebody's
				continue
			}
			if left := c.until(h.grace).Sub(now); leases == 0 || left < least {
				least = left
			}
			leases += len(h.leases)
		}
	}
	return leases, least
}

// asks reports whether a renewal has anything to ask the store for. One that has not, since no claim was answered yet, succeeds
// whatever the store does, and proves nothing of it.
func (s *session) asks() bool {
	for _, c := range s.claims {
		if c.state != asking {
			return true
		}
	}
	return false
}

// end is the loss of the whole session.
func (s *session) end(why error) {
	if s.over {
		return
	}
	s.stop()
	for _, c := range s.claims {
		s.pool.gone(c, why)
	}
	clear(s.claims)
	s.pool.client.cleaner.close(s.driver)
}

// retire closes a session that nobody needs any more.
func (s *session) retire() {
	s.stop()
	s.pool.client.cleaner.close(s.driver)
}

// abandon gives the session up when more claims that nobody wants have gathered in it than are given back at a time, and the
// store was silent for longer than it could keep anybody's trust: they go with the session's time, and do not become more for
// ever. Only to forget them would not do, because renewals that were not answered may have arrived.
func (s *session) abandon() {
	if s.unwanted <= maxCleanups || s.pool.client.clock.Since(s.renewed) < s.valid {
		return
	}
	s.end(driver.ErrSessionLost)
}

// stop makes the session over for the core.
func (s *session) stop() {
	s.over = true
	s.cancel()
	s.heartbeat.Stop()
	s.trust.Stop()
	if s.pool.session == s {
		s.pool.session = nil
	}
}
