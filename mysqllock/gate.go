package mysqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// gates are how who waits is told, with locks by GET_LOCK. Each claim has a gate, such a lock,
// which this process holds from before the claim joins its line until after it has left. Who waits
// behind that claim waits for its gate, and then looks at the line.
//
// So the order is that of the lines alone. A gate is opened once, for good: who comes too late
// finds it open. One behind which nobody stood, as the line says, was never waited for and is used
// again. All gates of a process are held on one connection, and when it ends they are open: who
// waits then asks, until the next renewal here notices, and locks them again.
type gates struct {
	db      *sql.DB
	timeout time.Duration // for one answer
	places  chan struct{} // one for each claim that may wait

	turns  sync.Mutex // one statement at a time is on the keeper; it guards what follows
	keeper *sql.Conn  // nil when there is none
	closed bool

	mu   sync.Mutex
	free []string         // locked, and nobody's
	late []string         // to be opened, by whoever has the keeper next
	of   map[string]*gate // by claim
}

// gate is that of a claim.
type gate struct {
	id, session string
	waited      bool // the claim had to wait, and so will others
}

const (
	stock = 16                       // gates are locked so many at a time
	few   = 2                        // so many that are free ask for more
	none  = "......................" // the gate of a claim that has none
)

var (
	errFull     = errors.New("as many claims wait behind gates as may")
	errNoKeeper = errors.New("the connection that has the gates is lost")
)

// newGates returns gates without a keeper, behind which so many claims may wait.
func newGates(db *sql.DB, timeout time.Duration, most int) *gates {
	return &gates{db: db, timeout: timeout, places: make(chan struct{}, most), of: map[string]*gate{}}
}

// place takes one of the places for claims that wait. The caller gives it back.
func (g *gates) place() (back func(), err error) {
	select {
	case g.places <- struct{}{}:
		return func() { <-g.places }, nil
	default:
		return nil, errFull
	}
}

// take gives a claim that is about to join a line its gate. Without one it joins all the same.
func (g *gates) take(ctx context.Context, session, claim string) string {
	if g == nil {
		return none
	}
	for {
		g.mu.Lock()
		mine := g.of[claim]
		if n := len(g.free) - 1; mine == nil && n >= 0 {
			mine = &gate{id: g.free[n], session: session}
			g.free, g.of[claim] = g.free[:n], mine
		}
		g.mu.Unlock()
		if mine != nil {
			return mine.id
		}
		g.turns.Lock()
		err := g.fill(ctx)
		g.turns.Unlock()
		if err != nil {
			return none
		}
	}
}

// gate is that of a claim, or "".
func (g *gates) gate(claim string) string {
	if g == nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if mine := g.of[claim]; mine != nil {
		return mine.id
	}
	return ""
}

// waits notes that a claim waits.
func (g *gates) waits(claim string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if mine := g.of[claim]; mine != nil {
		mine.waited = true
	}
}

// turn returns the keeper for a step in which a claim leaves, and what gives it back, or nil: the
// step opens the gate itself then. Where nobody waits, as far as is known, any connection does, and
// steps are not held up by each other.
func (g *gates) turn(claim string) (keeper *sql.Conn, over func()) {
	if g == nil {
		return nil, func() {}
	}
	g.mu.Lock()
	mine := g.of[claim]
	g.mu.Unlock()
	if mine == nil || !mine.waited || !g.turns.TryLock() {
		return nil, func() {}
	}
	if g.keeper == nil || g.keeper.Raw(alive) != nil {
		g.turns.Unlock()
		g.watch()
		return nil, func() {}
	}
	return g.keeper, g.turns.Unlock
}

// spare makes a statement on the keeper when the server grants no connection for it, since those
// who wait behind gates have theirs.
func (g *gates) spare(ctx context.Context, statement string, full error) ([][][]byte, error) {
	g.turns.Lock()
	defer g.turns.Unlock()
	if g.keeper == nil || g.keeper.Raw(alive) != nil {
		return nil, full
	}
	return once(ctx, g.db, g.keeper, statement)
}

// left takes the gate of a claim that is not in line any more, or never was. It is opened where
// others may stand there, unless the step has done it.
func (g *gates) left(claim string, others, opened bool) {
	if g == nil {
		return
	}
	g.mu.Lock()
	mine, low := g.of[claim], len(g.free) <= few
	delete(g.of, claim)
	if mine != nil && !others {
		g.free = append(g.free, mine.id)
	}
	g.mu.Unlock()
	switch {
	case mine == nil || !others:
	case !opened:
		go g.open(mine.id)
	case low:
		go g.open()
	}
}

// leftTogether takes the gates of claims that have left a line by one step, and opens them by one
// statement where others stand there.
func (g *gates) leftTogether(claims []rowline.Member, others bool) {
	if g == nil {
		return
	}
	var ids []string
	g.mu.Lock()
	for _, c := range claims {
		if mine := g.of[c.ID]; mine != nil {
			ids = append(ids, mine.id)
			delete(g.of, c.ID)
		}
	}
	if !others {
		g.free, ids = append(g.free, ids...), nil
	}
	g.mu.Unlock()
	go g.open(ids...)
}

// finish opens the gates of a session that has left all lines.
func (g *gates) finish(session string) {
	if g == nil {
		return
	}
	var ids []string
	g.mu.Lock()
	maps.DeleteFunc(g.of, func(_ string, mine *gate) bool {
		if mine.session == session {
			ids = append(ids, mine.id)
		}
		return mine.session == session
	})
	g.mu.Unlock()
	go g.open(ids...)
}

// open opens gates for good, those of all who come meanwhile by one statement, and locks new ones
// where few are free.
func (g *gates) open(ids ...string) {
	g.mu.Lock()
	g.late = append(g.late, ids...)
	g.mu.Unlock()
	g.turns.Lock()
	defer g.turns.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	g.mu.Lock()
	ids, g.late = g.late, nil
	g.mu.Unlock()
	if g.each(ctx, "release_lock", "", ids) == nil {
		_ = g.fill(ctx)
	}
}

// fill locks new gates where few are free. The caller has the turn, here and below.
func (g *gates) fill(ctx context.Context) error {
	g.mu.Lock()
	enough := len(g.free) > few
	g.mu.Unlock()
	if enough {
		return nil
	}
	ids := make([]string, stock)
	for i := range ids {
		ids[i] = driver.NewID()
	}
	err := g.each(ctx, "get_lock", ", 0", ids)
	if err == nil {
		g.mu.Lock()
		g.free = append(g.free, ids...)
		g.mu.Unlock()
	}
	return err
}

// each calls a function for each gate, by one statement. After an error all gates are open.
func (g *gates) each(ctx context.Context, function, more string, ids []string) error {
	switch {
	case g.keeper == nil:
		return errNoKeeper
	case len(ids) == 0:
		return nil
	}
	statement := "do 1"
	for _, id := range ids {
		statement += ", " + function + "('interlock " + id + "'" + more + ")"
	}
	_, err := once(ctx, g.db, g.keeper, statement)
	return err
}

// check makes a keeper where there is none, or where the server has ended it, and locks all gates
// again.
func (g *gates) check(ctx context.Context) error {
	g.turns.Lock()
	defer g.turns.Unlock()
	if g.keeper != nil {
		if g.keeper.Raw(alive) == nil {
			return nil
		}
		_ = g.keeper.Close()
	}
	if g.closed {
		return errNoKeeper
	}
	var err error
	if g.keeper, err = g.db.Conn(ctx); err != nil {
		return unconnected{err}
	}
	if _, err = once(ctx, g.db, g.keeper, "set session wait_timeout = 2147483"); err != nil { // which is the most everywhere
		return err
	}
	g.mu.Lock()
	ids := slices.Clone(g.free)
	for _, mine := range g.of {
		ids = append(ids, mine.id)
	}
	g.mu.Unlock()
	if err = g.each(ctx, "get_lock", ", 1", ids); err != nil { // somebody may just look whether it is open
		return err
	}
	return g.fill(ctx)
}

// watch looks after the keeper, unless somebody uses it.
func (g *gates) watch() {
	if g == nil || !g.turns.TryLock() {
		return
	}
	g.turns.Unlock()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
		defer cancel()
		_ = g.check(ctx)
	}()
}

// alive looks whether the server has ended a connection, without a statement.
func alive(under any) error {
	if c, ok := under.(sqldriver.SessionResetter); ok {
		return c.ResetSession(context.Background())
	}
	return nil
}

// close opens all gates.
func (g *gates) close() {
	g.turns.Lock()
	defer g.turns.Unlock()
	if g.closed = true; g.keeper != nil {
		_ = g.keeper.Close()
		g.keeper = nil
	}
}
