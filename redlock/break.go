package redlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Break implements driver.Inspector. A held claim is marked on all masters that it has, and no
// majority renews it any more; with now, and where it only waits, it leaves all of them.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	if err := redisstore.CheckName("redlock", name); err != nil {
		return err
	}
	entries, _, err := d.view(ctx, name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(s *entry) bool { return s.PublicID == publicID && (s.unsure || s.Fence == fence) })
	if i >= 0 && entries[i].unsure {
		return fmt.Errorf("redlock: break %q: too few masters answered to tell whether %s holds it", name, publicID)
	}
	if i < 0 {
		return fmt.Errorf("redlock: break %q: %w: no claim %s with token %d stands there", name, driver.ErrRefused, publicID, fence)
	}
	s, k := entries[i], keysOf(name)
	switch {
	case s.Foreign && !now:
		return fmt.Errorf("redlock: break %q: %w: another program holds it and reads no marks", name, driver.ErrOnlyNow)
	case s.Foreign:
		return d.breakForeign(ctx, k, s.id[1:])
	case s.Held && !now:
		_, err := d.mark(ctx, k, s, "mark")
		return err
	case s.Held:
		has, err := d.mark(ctx, k, s, "tell")
		if err != nil {
			return err
		}
		return d.takeOut(ctx, k, s, has)
	}
	has, err := d.mark(ctx, k, s, "out")
	if err != nil {
		return err
	}
	return d.takeOut(ctx, k, s, has)
}

// mark tells a claim on every master that it is broken, and returns which masters it has.
func (d *Driver) mark(ctx context.Context, k keys, s *entry, how string) (has []bool, err error) {
	has = make([]bool, len(d.nodes))
	stands, holds := 0, 0
	f, err := d.everywhere(ctx, func(*node) (redisconn.Call, bool) {
		return redisconn.Call{Script: markScript, Keys: k.all()[:4], Args: []string{s.id, how, "3600000"}}, true
	}, func(n *node, v any) error {
		switch v {
		case int64(2):
			has[n.i] = true
			holds++
		case int64(1):
			stands++
		}
		return nil
	}, nil)
	switch {
	case err != nil:
	case f.answered() < d.quorum:
		err = f.unavailable(d.shared)
	case s.Held && holds < d.quorum, stands+holds == 0:
		err = fmt.Errorf("%w: the claim has just left", driver.ErrRefused)
	}
	if err != nil {
		return nil, fmt.Errorf("redlock: break %q: %w", k.name, err)
	}
	return has, nil
}

// takeOut releases a claim on the masters that it has, and hands them over.
func (d *Driver) takeOut(ctx context.Context, k keys, s *entry, has []bool) error {
	proposal := proposalOf(time.Now())
	f, err := d.everywhere(ctx, func(n *node) (redisconn.Call, bool) {
		return redisconn.Call{Script: lineScript, Keys: k.all(), Args: []string{s.id, "0", "3600000", proposal}}, has[n.i]
	}, func(*node, any) error { return nil }, nil)
	if err == nil && s.Held && f.answered() < d.quorum {
		err = f.unavailable(d.shared)
	}
	if err != nil {
		return fmt.Errorf("redlock: break %q: %w", k.name, err)
	}
	return nil
}

// breakForeign deletes another program's lock from every master where it still has the value that
// was seen.
func (d *Driver) breakForeign(ctx context.Context, k keys, value string) error {
	gone := 0
	f, err := d.everywhere(ctx, func(*node) (redisconn.Call, bool) {
		return redisconn.Call{Script: evictScript, Keys: []string{k.name}, Args: []string{value}}, true
	}, func(_ *node, v any) error {
		if v == int64(1) {
			gone++
		}
		return nil
	}, nil)
	if err == nil && f.answered() < d.quorum {
		err = f.unavailable(d.shared)
	}
	if err == nil && gone == 0 {
		err = fmt.Errorf("%w: another holds it now", driver.ErrRefused)
	}
	if err != nil {
		return fmt.Errorf("redlock: break %q: %w", k.name, err)
	}
	return nil
}
