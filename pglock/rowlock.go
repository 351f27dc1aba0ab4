package pglock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/internal/connlock"
)

// rowlock has the queries of technique rowlock: a transaction for each claim, on a single
// connection, locks the row of the name. It is the row that InTx changes, so a lock of either kind
// excludes the other.
type rowlock struct{ *server }

// technique returns the queries. They draw no token: see rowStore.
func (s rowlock) technique() connlock.Technique {
	const begin = "begin isolation level read committed; "
	return connlock.Technique{
		Try:   func(l connlock.Lock) connlock.Query { return connlock.Query{SQL: begin + s.lock(l) + " skip locked"} },
		Wait:  func(l connlock.Lock) connlock.Query { return connlock.Query{SQL: begin + s.insert(l) + s.lock(l)} }, // the transaction that made the row may have rolled back
		Leave: func(connlock.Lock) connlock.Query { return connlock.Query{SQL: "rollback; select true"} },
		Left:  left, Waits: waitsOf, Free: "rollback", Begins: true,
		Classify: func(err error) error { return classify(err, &s.options) },
	}
}

// lock locks the row of a name.
func (s rowlock) lock(l connlock.Lock) string {
	mode := "share"
	if l.Kind.Exclusive() {
		mode = "update"
	}
	return fmt.Sprintf("select 0 from %sheld where name = decode('%x', 'hex') for %s", s.in, l.Name, mode)
}

// insert makes the row of a name that has none.
func (s rowlock) insert(l connlock.Lock) string {
	return fmt.Sprintf("insert into %sheld values (decode('%x', 'hex'), 0) on conflict do nothing; ", s.in, l.Name)
}

// rowStore implements connlock.Apart.
type rowStore struct{ *connDriver }

// Prepare makes the row in a transaction of its own: one that also locks it would keep others out.
// If a transaction of the program has made it and has not ended, that has the lock.
func (s rowStore) Prepare(holding connlock.Conn, l connlock.Lock) (bool, error) {
	_, err := holding.(*conn).Fetch(context.Background(), connlock.Query{SQL: "select set_config('lock_timeout', '10ms', true); " + rowlock{s.server}.insert(l)})
	if code(err) == "55P03" {
		return false, nil
	}
	if err != nil {
		err = classify(err, &s.options)
	}
	return err == nil, err
}

// Draw draws a token that is flushed at once, not at the end of the transaction that has the lock.
func (s rowStore) Draw(holding connlock.Conn, l connlock.Lock) (uint64, error) {
	if !l.Kind.Exclusive() {
		return 0, nil
	}
	token, err := holding.(*conn).Fetch(context.Background(), connlock.Query{SQL: "select " + s.token()})
	return uint64(number(token)), err //nolint:gosec // never negative
}
