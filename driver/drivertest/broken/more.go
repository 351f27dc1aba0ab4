package broken

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// more are faults thought up from the contract's words alone, without a look at how the laws try them. Those without a
// law are not noticed by any.
func more() []Driver {
	var all []Driver
	for _, some := range [][]Driver{
		moreNaming, moreTokens, moreSharing, moreSessions, moreRenewing, moreClosing, moreBeside, moreBreaking, moreWaiting,
		moreReleasing, moreLosing, moreLosses, moreShowing, moreLines, moreWatching, moreErrors, moreTraits, moreUnderWay, moreOfKinds,
		moreSettling, moreSwapping,
	} {
		all = append(all, some...)
	}
	return all
}

// noticed returns those of more that a law convicts.
func noticed() []Driver {
	return slices.DeleteFunc(more(), func(d Driver) bool { return d.Law == "" })
}

// look shows a line to a fault, at no cost and over a wire that nobody cuts.
func (l *layer) look(name string) driver.Line {
	line, err := l.memory.Share().Line(context.Background(), name)
	if err != nil {
		panic(err) // nobody has cut this wire
	}
	return line
}

// find returns a claim of the line by its public id.
func find(line driver.Line, publicID string) (driver.Holder, bool) {
	for _, h := range line.Claims {
		if h.PublicID == publicID {
			return h, true
		}
	}
	return driver.Holder{}, false
}

// has reports whether the claim is held in the store, noticed or not.
func (s *session) has(c driver.Claim) bool {
	h, _ := find(s.l.look(c.Name), driver.PublicID(c.ID))
	return h.Held
}

// remains puts a claim in line that nobody knows of.
func (l *layer) remains(c driver.Claim) {
	ctx := context.Background()
	s, err := l.memory.Share().Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Hour})
	if err != nil {
		panic(err) // nobody has cut this wire
	}
	c.ID, c.Queue = driver.NewID(), true
	_, _ = s.Acquire(ctx, c) // refused where it does not go with those that stand there
}

// endless is ctx without its end, until the driver is closed.
func (l *layer) endless(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		<-l.closed
		cancel()
	}()
	return ctx
}

// stale reports whether nobody has renewed the session for its time.
type stale struct {
	mu      sync.Mutex
	renewed map[*session]time.Time
}

func (k *stale) note(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.renewed == nil {
		k.renewed = map[*session]time.Time{}
	}
	k.renewed[s] = time.Now()
}

func (k *stale) is(s *session) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.renewed[s]) >= s.Session.Valid()
}

func (k *stale) renew(s *session, ctx context.Context) (driver.Renewal, error) { //nolint:revive // in the order of a fault
	r, err := s.Session.Renew(ctx)
	if err == nil {
		k.note(s)
	}
	return r, err
}

// owned knows the claims of all sessions by their public ids.
type owned struct {
	mu     sync.Mutex
	claims map[string]driver.Claim
	of     map[string]*session
	since  map[string]time.Time
}

func (o *owned) keep(s *session, c driver.Claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claims == nil {
		o.claims, o.of, o.since = map[string]driver.Claim{}, map[string]*session{}, map[string]time.Time{}
	}
	id := driver.PublicID(c.ID)
	o.claims[id], o.of[id] = c, s
	if o.since[id].IsZero() {
		o.since[id] = time.Now()
	}
}

func (o *owned) acquire(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) { //nolint:revive // in the order of a fault
	o.keep(s, c)
	return s.acquire(ctx, c)
}

func (o *owned) claim(publicID string) (c driver.Claim, s *session, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claims[publicID], o.of[publicID], o.since[publicID]
}
