package pglock

import (
	"bytes"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// words are the statements for a claim: what takes the lock if it is free, what waits for it, and what gives it back. The first two answer
// a token, 0 where there is none and -1 where the lock was not free; the last, whether there was anything to give back.
type words struct{ try, wait, leave query }

func (d *connDriver) words(l connlock.Lock) words {
	if d.rows {
		return d.rowWords(l)
	}
	args, token := d.args(l), "0"
	if d.fenced(l) {
		token = d.draw
	}
	lock := d.mode(l) + "($1)"
	if len(args) == 2 {
		lock = d.mode(l) + "($1, $2)"
	}
	return words{
		try:   query{"select case when pg_try_advisory_lock" + lock + " then " + token + " else -1 end", args},
		wait:  query{"select case when pg_advisory_lock" + lock + " is null then 0 else " + token + " end", args}, // it never is
		leave: query{"select pg_advisory_unlock" + lock, args},
	}
}

// hand is the statement that gives a lock back if another backend waits: it answers whether there was a lock, and whether the other one
// waits still.
func (d *connDriver) hand(l connlock.Lock, pid string) query {
	args := append([][]byte{[]byte(pid)}, d.args(l)...)
	lock := d.mode(l) + "($2)"
	if len(args) == 3 {
		lock = d.mode(l) + "($2, $3)"
	}
	return query{"select case when " + waits + " then pg_advisory_unlock" + lock + "::text || ' ' || (" + waits + ")::text end", args}
}

// mode ends the name of a function.
func (d *connDriver) mode(l connlock.Lock) string {
	if l.Kind.Exclusive() {
		return ""
	}
	return "_shared"
}

// args are the key's.
func (d *connDriver) args(l connlock.Lock) [][]byte { return bytes.Split([]byte(l.Key), []byte(", ")) }

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
