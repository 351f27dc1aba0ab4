package mysqllock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/internal/connlock"
)

// rowlock has the queries of technique rowlock, with the prefix of the tables: a transaction for
// each claim, on a single connection, locks the row of the name. It is the row that InTx changes,
// so a lock of either kind excludes the other.
type rowlock string

// technique returns the queries, without Classify. They draw no token: see rowStore.
func (prefix rowlock) technique() connlock.Technique {
	return connlock.Technique{
		Try:   func(l connlock.Lock) connlock.Query { return prefix.row(l, false) },
		Wait:  func(l connlock.Lock) connlock.Query { return prefix.row(l, true) },
		Leave: func(connlock.Lock) connlock.Query { return connlock.Query{SQL: "rollback"} },
		Left:  func(r connlock.Reply) bool { return r.Err == nil },
		Waits: busy, Free: "rollback",
	}
}

func (prefix rowlock) row(l connlock.Lock, waits bool) connlock.Query {
	return connlock.Query{SQL: fmt.Sprintf("call %srow(x'%x', %t)", prefix, l.Name, waits)}
}

// busy counts a connection if it carries out a statement. The server shows no more to everybody of
// one that waits for a row; rows are given in no promised order.
func busy(id string) connlock.Query {
	return connlock.Query{SQL: fmt.Sprintf("select count(*) from information_schema.processlist where id = %s and command = 'Query'", id)}
}

// rowStore implements connlock.Apart.
type rowStore struct{ *connDriver }

// Prepare makes the row in a transaction of its own: one that also locks it would keep others out.
// If a transaction of the program has made it and has not ended, that has the lock. A row that is
// there is read and not locked, since the try of another claim would find that.
func (s rowStore) Prepare(holding connlock.Conn, l connlock.Lock) (bool, error) {
	for _, statement := range []string{
		"select count(*) from %sheld where name = x'%x'",
		"insert into %sheld values (x'%x', 0) on duplicate key update turns = turns",
	} {
		n, err := holding.(*conn).Fetch(context.Background(), connlock.Query{SQL: fmt.Sprintf(statement, s.options.Prefix, l.Name)})
		switch {
		case code(err) == lockTimeout:
			return false, nil
		case err != nil:
			return false, classify(err, &s.options)
		case n == "1":
			return true, nil
		}
	}
	return true, nil
}

// Draw draws a token that is good at once, not at the end of the transaction that has the lock.
func (s rowStore) Draw(holding connlock.Conn, _ connlock.Lock) (uint64, error) {
	token, err := holding.(*conn).Fetch(context.Background(), connlock.Query{SQL: fmt.Sprintf("call %stoken()", s.options.Prefix)})
	return uint64(integer(token)), err //nolint:gosec // drawn by us
}
