package interlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/doctor"
)

// rehearsals is how many names rehearsals have. Some stores keep something of each name that was
// ever locked, as a row with its last token: so there are few. Who rehearses beside another one
// waits for him where it is the same name.
const rehearsals = 16

// rehearse takes a lock of its own, breaks it as an operator would, waits until its holder hears of
// it, and takes it again: everything that a lock is made of, with this client's rights.
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
	name := doctor.Prefix + strconv.Itoa(rand.IntN(rehearsals)) //nolint:gosec // nobody gains by guessing it
	m := c.Mutex(name, TTL(ttl), Grace(min(e.Grace, max(ttl/10, minGrace))), Isolated(), Note("a rehearsal"))
	asked := c.clock.Now()
	first, err := m.TryLock(bounded) // which tells at once what is wrong
	if errors.Is(err, ErrHeld) {
		first, err = m.Lock(bounded)
	}
	switch {
	case errors.Is(err, ErrHeld):
		f.Level, f.Seen = driver.LevelSkip, fmt.Sprintf("others rehearse: %v", err)
		return f, nil
	case errors.Is(err, driver.ErrRefused) && c.denied(ctx, name):
		f.Level, f.Seen = driver.LevelSkip, fmt.Sprintf("this user may not use %q, so whether it may lock the names that it needs was not tried: %v", name, err)
		return f, nil
	case err != nil:
		return wrong("a lock cannot be taken", err)
	}
	taken := c.clock.Since(asked)
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
	f.Seen = fmt.Sprintf("a lock was taken in %v%s, given back, and taken again", doctor.Short(taken), told)
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

// denied reports whether this client may not even look at a name: others it may be allowed to lock.
func (c *Client) denied(ctx context.Context, name string) bool {
	store, ok := c.driver.(driver.Inspector)
	if !ok {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, c.opts.Patience)
	defer cancel()
	_, err := store.Line(bounded, name)
	return errors.Is(err, driver.ErrRefused)
}

// answers returns why the store does not answer, if it does not.
func (c *Client) answers(ctx context.Context) error {
	store, ok := c.driver.(driver.Inspector)
	if !ok {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, c.opts.Patience)
	defer cancel()
	_, err := store.Line(bounded, doctor.Prefix+driver.NewID())
	if errors.Is(err, driver.ErrRefused) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// breakOwn breaks a lease, waits until it is told, and says so. A store in which nothing can be
// broken has nothing to say.
func (c *Client) breakOwn(ctx context.Context, name string, l *Lease) (string, error) {
	store, ok := c.driver.(driver.Inspector)
	if !ok {
		return "", nil
	}
	line, err := store.Line(ctx, name)
	if errors.Is(err, errors.ErrUnsupported) { // whom nobody sees nobody breaks
		return "", nil
	}
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(line.Claims, func(h driver.Holder) bool { return h.Held })
	if i < 0 {
		return "", fmt.Errorf("%d claims are shown, want the one that holds", len(line.Claims))
	}
	asked, own := c.clock.Now(), line.Claims[i]
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
		return fmt.Sprintf(", broken and told of it in %v", doctor.Short(c.clock.Since(asked))), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
