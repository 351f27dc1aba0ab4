package pglock

import (
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// words are the statements for a claim: what takes the lock if it is free, what waits for it, the rows of pg_locks that show that it waits or
// has it, and what gives it back. The first two answer a token, 0 where there is none and -1 where the lock was not free; the last, whether
// there was anything to give back.
type words struct{ try, wait, shows, leave string }

func (d *connDriver) words(l connlock.Lock) words {
	if d.rows {
		return d.rowWords(l)
	}
	shared, token := "_shared", "0"
	if d.fenced(l) {
		token = "nextval('" + d.in + "token')"
	}
	if l.Kind.Exclusive() {
		shared = ""
	}
	k, _ := d.key(l.Name) // it was made before
	return words{
		try:   fmt.Sprintf("select case when pg_try_advisory_lock%s(%v) then %s else -1 end", shared, k, token),
		wait:  fmt.Sprintf("select pg_advisory_lock%s(%v); select %s", shared, k, token),
		shows: k.locks(),
		leave: fmt.Sprintf("select pg_advisory_unlock%s(%v)", shared, k),
	}
}

// fenced reports whether a claim draws tokens.
func (d *connDriver) fenced(l connlock.Lock) bool { return d.fence && l.Kind.Exclusive() }

// KeyOf implements connlock.Store.
func (d *connDriver) KeyOf(c driver.Claim) (string, error) {
	switch {
	case c.Kind == driver.Permit:
		return "", fmt.Errorf("%w: technique %s has no permits: use technique rows", driver.ErrRefused, d.options.Technique)
	case c.Name == "" || len(c.Name) > maxName:
		return "", fmt.Errorf("%w: want 1 to %d bytes", driver.ErrRefused, maxName)
	case d.rows:
		return c.Name, nil
	}
	k, err := d.key(c.Name)
	return k.String(), err
}
