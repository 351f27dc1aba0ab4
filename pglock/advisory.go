package pglock

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// words are the statements for a claim: what takes the lock if it is free, what waits for it, and what gives it back. The first two answer
// a token, 0 where there is none and -1 where the lock was not free; the last, whether there was anything to give back.
type words struct{ try, wait, leave connlock.Query }

func (d *connDriver) words(l connlock.Lock) words {
	if d.rows {
		return d.rowWords(l)
	}
	t, args := d.text(l), d.args(l)
	return words{connlock.Query{SQL: t.try, Args: args}, connlock.Query{SQL: t.wait, Args: args, Tells: true}, connlock.Query{SQL: t.leave, Args: args}}
}

// text are the statements of all claims that are alike, but for the key. Hand gives a lock back if another backend waits: it answers
// whether there was a lock, and whether the other one waits still.
type text struct{ try, wait, leave, hand string }

// textOf writes the statements of locks that end names of functions by mode, whose keys have two parts or one.
func textOf(mode, token string, pair bool) text {
	lock, second := mode+"($1)", mode+"($2)"
	if pair {
		lock, second = mode+"($1, $2)", mode+"($2, $3)"
	}
	return text{
		try:   "select case when pg_try_advisory_lock" + lock + " then " + token + " else -1 end",
		wait:  "select case when pg_advisory_lock" + lock + " is null then 0 else " + token + " end", // it never is
		leave: "select pg_advisory_unlock" + lock,
		hand:  "select case when " + waits + " then pg_advisory_unlock" + second + "::text || ' ' || (" + waits + ")::text end",
	}
}

// text returns the statements for a claim.
func (d *connDriver) text(l connlock.Lock) text {
	pair := strings.Contains(l.Key, ",")
	switch {
	case !l.Kind.Exclusive() && pair:
		return d.texts.sharedPair
	case !l.Kind.Exclusive():
		return d.texts.shared
	case pair:
		return d.texts.pair
	}
	return d.texts.one
}

// write writes the statements of all claims.
func (d *connDriver) write() {
	token := "0"
	if d.fence {
		token = d.draw
	}
	d.texts.one, d.texts.pair = textOf("", token, false), textOf("", token, true)
	d.texts.shared, d.texts.sharedPair = textOf("_shared", "0", false), textOf("_shared", "0", true)
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
		return "", fmt.Errorf("%w: want 1 to %d bytes", driver.ErrName, maxName)
	case d.rows:
		return c.Name, nil
	}
	k, err := d.key(c.Name)
	return k.String(), err
}
