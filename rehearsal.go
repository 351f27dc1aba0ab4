package interlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// rehearse takes a lock of its own, breaks it as an operator would, waits until its holder hears of it, and takes it again: everything that
// a lock is made of, with this client's rights.
func (c *Client) rehearse(ctx context.Context, e driver.Exam) (f Finding, err error) {
	f = Finding{Title: "rehearsal"}
	wrong := func(what string, err error) (Finding, error) {
		if again := c.answers(ctx); again != nil {
			return f, err
		}
		f.Level, f.Seen = driver.LevelBad, fmt.Sprintf("%s: %v", what, err)
		f.Why, f.Mend = "no lock can be had, or not given back", "as the message says: rights, room, or the setting that it names"
		return f, nil
	}
	ttl := max(min(e.TTL, rehearsalTTL), c.traits.MinTTL)
	bounded, cancel := context.WithTimeout(ctx, 2*c.opts.Patience+3*ttl)
	defer cancel()
	name := doctorPrefix + driver.NewID()
	m := c.Mutex(name, TTL(ttl), Grace(min(e.Grace, max(ttl/10, minGrace))), Isolated(), Note("a rehearsal"))
	asked := c.clock.now()
	first, err := m.TryLock(bounded)
	if err != nil {
		return wrong("a lock cannot be taken", err)
	}
	taken := c.clock.passed(asked)
	told, err := c.breakOwn(bounded, name, first)
	if release := first.Release(); err == nil && release != nil && !errors.Is(release, ErrLost) {
		return wrong("a lock cannot be given back", release)
	}
	if err != nil {
		return wrong("a lock cannot be broken", err)
	}
	second, err := m.Lock(bounded)
	if err != nil {
		return wrong("a lock that was given back cannot be taken again", err)
	}
	before, after := first.Fence(), second.Fence()
	if err := second.Release(); err != nil {
		return wrong("a lock cannot be given back", err)
	}
	f.Seen = fmt.Sprintf("a lock was taken in %v%s, given back, and taken again", short(taken), told)
	if c.traits.Fence == driver.NoFence {
		return f, nil
	}
	f.Seen += fmt.Sprintf("; its tokens were %d and %d", before, after)
	if after <= before {
		f.Code, f.Level = "A11", driver.LevelBad
		f.Why, f.Mend = "tokens do not grow: a resource that checks them refuses who holds", "see the page of this store; it is another program's bug, or ours"
	}
	return f, nil
}

// answers returns why the store does not answer, if it does not.
func (c *Client) answers(ctx context.Context) error {
	store, ok := c.driver.(driver.Inspector)
	if !ok {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, c.opts.Patience)
	defer cancel()
	_, err := store.Line(bounded, doctorPrefix+driver.NewID())
	if errors.Is(err, driver.ErrRefused) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// breakOwn breaks a lease, waits until it is told, and says so. A store in which nothing can be broken has nothing to say.
func (c *Client) breakOwn(ctx context.Context, name string, l *Lease) (string, error) {
	store, ok := c.driver.(driver.Inspector)
	if !ok {
		return "", nil
	}
	line, err := store.Line(ctx, name)
	if err == nil && len(line.Claims) != 1 {
		err = fmt.Errorf("%d claims are shown, want the one that holds", len(line.Claims))
	}
	if err != nil {
		return "", err
	}
	asked, own := c.clock.now(), line.Claims[0]
	err = store.Break(ctx, name, own.PublicID, own.Fence, false)
	if errors.Is(err, driver.ErrRefused) { // a layout that has no room for a mark
		err = store.Break(ctx, name, own.PublicID, own.Fence, true)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return "", nil
	case err != nil:
		return "", err
	}
	select {
	case <-l.Context().Done():
		return fmt.Sprintf(", broken and told of it in %v", short(c.clock.passed(asked))), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
