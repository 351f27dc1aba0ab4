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

// gates wake claims that wait, by locks of GET_LOCK. Each claim has a gate, which is such a lock.
// Its process holds the gate from before the claim joins its line until after it was released. A
// claim that waits behind another one waits for the other one's gate, and then reads the line.
//
// So the order is that of the lines alone. A gate is opened once, for good, and a late claim finds
// it open. A gate behind which no claim stood, as the line says, is used again. All gates of a
// process are held on one connection, the keeper. When that ends, all are open: claims that wait
// then ask, until the process notices at its next renewal, and locks the gates again.
type gates struct {
	db      *sql.DB
	timeout time.Duration // for one answer
	places  chan struct{} // one for each claim that may wait

	turns  sync.Mutex // one statement at a time is on the keeper; it guards what follows
	keeper *sql.Conn  // nil when there is none
	closed bool

	mu   sync.Mutex
	free []string         // locked, and of no claim
	late []string         // to be opened by the next user of the keeper
	of   map[string]*gate // by claim
}

// gate is the gate of a claim.
type gate struct {
	id, session string
	waited      bool // the claim had to wait, and so will others
}

const (
	stock = 16                       // gates are locked so many at a time
	few   = 2                        // with no more than these free, new ones are locked
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

// place takes one of the places for claims that wait, and returns what frees it.
func (g *gates) place() (back func(), err error) {
	select {
	case g.places <- struct{}{}:
		return func() { <-g.places }, nil
	default:
		return nil, errFull
	}
}

// take returns the gate for a claim that is about to join a line, or none. A claim joins also
// without a gate.
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

// gate returns the gate of a claim, or "".
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

// waits marks a claim as one that has waited.
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

// turn returns the keeper for a step in which a claim leaves, and what ends its use: such a step
// opens the gate itself. It returns no keeper if no claim waits, as far as is known: then any
// connection does, and steps do not hold up each other.
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

// spare makes a statement on the keeper when the server grants no more connections, since claims
// that wait behind gates have them.
func (g *gates) spare(ctx context.Context, statement string, full error) ([][][]byte, error) {
	g.turns.Lock()
	defer g.turns.Unlock()
	if g.keeper == nil || g.keeper.Raw(alive) != nil {
		return nil, full
	}
	return once(ctx, g.db, g.keeper, statement)
}

// left frees the gate of a claim that is not in line any more, or never was. It opens the gate if
// others may stand behind it, unless the step has.
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

// leftTogether is left for claims that were released by one step.
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

// open opens gates for good, by one statement for all callers that come meanwhile, and locks new
// ones if few are free.
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

// fill locks new gates if few are free. g.turns is held, here and in each.
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

// check makes a keeper if there is none, or if the server has ended it, and locks all gates again.
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
	if err = g.each(ctx, "get_lock", ", 1", ids); err != nil { // another session may be testing whether it is open
		return err
	}
	return g.fill(ctx)
}

// watch checks the keeper in the background, unless it is in use.
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

// alive checks without a statement whether the server has ended a connection.
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
