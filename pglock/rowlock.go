package pglock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/internal/connlock"
)

// rowWords are the words of technique rowlock: a transaction for each claim, on a connection apart, locks the name's row. It is the row that
// InTx changes, so a lock of either kind excludes the other.
func (d *connDriver) rowWords(l connlock.Lock) words {
	mode := "share"
	if l.Kind.Exclusive() {
		mode = "update"
	}
	begin, lock := "begin isolation level read committed; ", fmt.Sprintf("select 0 from %sheld where name = decode('%x', 'hex') for %s", d.in, l.Name, mode)
	return words{
		try:   connlock.Query{SQL: begin + lock + " skip locked"},
		wait:  connlock.Query{SQL: begin + d.insert(l) + lock}, // who made the row may have rolled back
		leave: connlock.Query{SQL: "rollback; select true"},
	}
}

// insert makes the row of a name that has none.
func (d *connDriver) insert(l connlock.Lock) string {
	return fmt.Sprintf("insert into %sheld values (decode('%x', 'hex'), 0) on conflict do nothing; ", d.in, l.Name)
}

// rowStore implements connlock.Apart.
type rowStore struct{ *connDriver }

// Prepare makes the row in a transaction of its own: one that locks it would keep others out with it. Where a program's transaction has made
// it and has not ended, that has the lock.
func (s rowStore) Prepare(holding connlock.Conn, l connlock.Lock) (bool, error) {
	_, err := holding.(*conn).Fetch(context.Background(), connlock.Query{SQL: "select set_config('lock_timeout', '10ms', true); " + s.insert(l)})
	if code(err) == "55P03" {
		return false, nil
	}
	if err != nil {
		err = classify(err, &s.options)
	}
	return err == nil, err
}

// Draw draws a token where it is flushed at once, and not with the end of the transaction that has the lock.
func (s rowStore) Draw(holding connlock.Conn, l connlock.Lock) (uint64, error) {
	if !s.fenced(l) {
		return 0, nil
	}
	token, err := holding.(*conn).Fetch(context.Background(), connlock.Query{SQL: "select " + s.draw})
	return granted(token).Fence, err
}
